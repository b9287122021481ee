// A block of bytes on the host, aligned, owned: what arenas, tensors and kernels' scratch lie in.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace neap::inline v0 {

class byte_block {
 public:
  byte_block() = default;
  /// Throws std::bad_alloc where the system has not so much memory.
  byte_block(std::size_t bytes, std::size_t alignment)
      : data_(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{alignment}))),
        bytes_(bytes),
        alignment_(alignment) {}
  byte_block(byte_block&& x) noexcept { swap(x); }
  byte_block& operator=(byte_block&& x) noexcept {
    byte_block(std::move(x)).swap(*this);
    return *this;
  }
  ~byte_block() {
    if (data_) ::operator delete(data_, std::align_val_t{alignment_});
  }
  /// The first byte; nullptr if there is no block.
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(byte_block& x) noexcept {
    std::swap(data_, x.data_), std::swap(bytes_, x.bytes_), std::swap(alignment_, x.alignment_);
  }
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0, alignment_ = 0;
};

}  // namespace neap::inline v0
