// The arena: the one block of memory that a planned step runs in. It is taken once; nothing is taken while steps run.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/units.hpp>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace neap::inline v0 {

/// A block of bytes on the host, aligned to 4096 bytes, owned.
class arena {
 public:
  arena() = default;
  /// Throws neap::error where the system has not so much memory.
  explicit arena(bytes_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    auto const rounded = static_cast<std::size_t>(align_up(bytes, alignment));
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
    if (!data_) throw error("arena: the system does not give " + std::to_string(bytes) + " bytes");
  }
  std::byte* data() const { return data_.get(); }
  bytes_t bytes() const { return bytes_; }

 private:
  static constexpr bytes_t alignment = 4096;
  struct release {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, release> data_;
  bytes_t bytes_ = 0;
};

}  // namespace neap::inline v0
