// A block of bytes on the host, aligned, owned: what arenas, tensors and kernels' scratch lie in.
//
// Allocators serve aligned requests by a slow way: glibc's take ten times as long as plain ones of the same few bytes, and
// results of small steps are made by the million. Small blocks come from plain new, and are aligned here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NEAP_POISONS_BYTES
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define NEAP_POISONS_BYTES
#endif
#if defined(NEAP_POISONS_BYTES)
#include <sanitizer/asan_interface.h>
#endif

namespace neap { inline namespace v0 {

class byte_block {
 public:
  byte_block() = default;
  /// `alignment` is a power of two. Throws std::bad_alloc where the system has not so much memory.
  byte_block(std::size_t bytes, std::size_t alignment) : bytes_(bytes), alignment_(alignment) {
    if (is_small()) allocate_small();
    else data_ = static_cast<std::byte*>(::operator new(bytes, std::align_val_t{alignment}));
  }
  byte_block(byte_block&& x) noexcept { swap(x); }
  byte_block& operator=(byte_block&& x) noexcept {
    byte_block(std::move(x)).swap(*this);
    return *this;
  }
  ~byte_block() {
    if (!data_) return;
    if (is_small()) ::operator delete(start_);
    else ::operator delete(data_, std::align_val_t{alignment_});
  }
  /// The first byte; nullptr if there is no block.
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  /// What glibc's cache of each thread holds, with room for alignment to 64 bytes.
  static constexpr std::size_t small_bytes = 960, small_alignment = 64;
  bool is_small() const { return bytes_ <= small_bytes && alignment_ <= small_alignment; }
  void allocate_small() {
    auto const room = bytes_ + alignment_ - 1;
    start_ = static_cast<std::byte*>(::operator new(room));
    auto const past = reinterpret_cast<std::uintptr_t>(start_) & (alignment_ - 1);
    data_ = start_ + (past ? alignment_ - past : 0);
#if defined(NEAP_POISONS_BYTES)
    __asan_poison_memory_region(start_, static_cast<std::size_t>(data_ - start_));
    __asan_poison_memory_region(data_ + bytes_, static_cast<std::size_t>(start_ + room - (data_ + bytes_)));
#endif
  }
  void swap(byte_block& x) noexcept {
    std::swap(data_, x.data_), std::swap(start_, x.start_);
    std::swap(bytes_, x.bytes_), std::swap(alignment_, x.alignment_);
  }
  std::byte* data_ = nullptr;
  std::byte* start_ = nullptr;  // of a small block: what new gave
  std::size_t bytes_ = 0, alignment_ = 0;
};

}}  // namespace neap::v0

#undef NEAP_POISONS_BYTES
