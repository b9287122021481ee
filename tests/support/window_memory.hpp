// Host memory whose addresses agree with those of an interpreted buffer (ptx/memory.hpp) in the lower 32 bits. An address
// that becomes the device's then keeps its lower half, and so does a flag whose padding happens to look like an address.
#pragma once

#include "ptx/memory.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace neap::testing {

/// `size` bytes of 0xcd, with 4 KiB before and behind them that belong to nothing else.
class window_memory {
 public:
  window_memory() = default;
  explicit window_memory(std::size_t size) : mapped_(size + 2 * margin), begin_(mapped()) {
    std::memset(begin_ - margin, 0xcd, mapped_);
  }
  window_memory(window_memory&& o) noexcept
      : mapped_(std::exchange(o.mapped_, 0)),
        begin_(std::exchange(o.begin_, nullptr)) {}
  window_memory& operator=(window_memory&& o) noexcept {
    std::swap(mapped_, o.mapped_);
    std::swap(begin_, o.begin_);
    return *this;
  }
  ~window_memory() {
    if (begin_) munmap(begin_ - margin, mapped_);
  }

  std::byte* data() const { return begin_; }
  std::size_t size() const { return begin_ ? mapped_ - 2 * margin : 0; }

 private:
  static constexpr std::size_t margin = 4096;
  static constexpr std::uint64_t first_window = 0x1000, windows = 0x4000;  // 16 TiB and above: seldom used by programs

  std::size_t mapped_ = 0;
  std::byte* begin_ = nullptr;

  std::byte* mapped() const {
    static std::atomic<std::uint64_t> next{0};
    for (std::uint64_t tried = 0; tried < windows; ++tried) {
      std::uint64_t const window = first_window + next++ % windows;
      auto* const at = reinterpret_cast<std::byte*>((window << 32) + ptx::buffer_start - margin);
      void* const got =
          mmap(at, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
      if (got == at) return at + margin;
      if (got != MAP_FAILED) munmap(got, mapped_);
      else if (errno != EEXIST) break;
    }
    throw std::bad_alloc();
  }
};

}  // namespace neap::testing
