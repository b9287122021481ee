// Memory of an interpreted launch. Every buffer is a region of its own with wide red zones. Each byte has a shadow:
// whether it was written, and its last accesses, from which races are found.
#pragma once

#include "report.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

namespace neap::testing::ptx {

/// The last access of a kind. Time counts the memory instructions of warps; 0: none yet.
struct access_record {
  std::uint32_t thread = 0;  // of the grid: warps are numbered block by block, 32 threads each
  std::uint32_t time = 0;
  std::uint32_t line : 30 = 0;
  std::uint32_t strong : 1 = 0;  // atomic, volatile or relaxed: two of them are no race
  std::uint32_t : 1;
};

struct shadow_cell {
  access_record write;
  access_record reads[2];
};

enum byte_state : std::uint8_t { byte_written = 1, byte_in_flight = 2 };

/// An array of zeros, whose pages take no memory before they are written: shadows are 36 times as large as their bytes.
template <class T>
class zeros {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit zeros(std::size_t size) : at_(size ? static_cast<T*>(std::calloc(size, sizeof(T))) : nullptr), size_(size) {
    if (size && !at_) throw std::bad_alloc();
  }
  T* data() { return at_.get(); }
  T const* data() const { return at_.get(); }
  std::size_t size() const { return size_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  T const* begin() const { return data(); }
  T const* end() const { return data() + size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  T const& operator[](std::size_t i) const { return data()[i]; }

 private:
  struct freed {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], freed> at_;
  std::size_t size_;
};

struct region {
  static constexpr std::size_t page = 512;  // bytes

  std::string name;  // "buffer 2", "shared variable 'tile'"
  std::vector<std::uint8_t> bytes;
  zeros<std::uint8_t> state;
  zeros<shadow_cell> shadow;
  zeros<std::uint8_t> touched;  // pages that a launch has accessed
  bool constant = false;

  region(std::string n, std::size_t size, bool written)
      : name(std::move(n)),
        bytes(size, 0xcd),
        state(size),
        shadow(size),
        touched((size + page - 1) / page) {
    if (written) std::fill_n(state.begin(), size, byte_written);
  }
};

// Addresses: the upper 32 bits are a window. A buffer begins 1 GiB above its window's start, so that addresses
// before its first byte still name it.
inline constexpr std::uint64_t shared_window = 1, local_window = 2, param_window = 3, first_buffer_window = 16;
inline constexpr std::uint64_t buffer_start = 0x4000'0000;

inline std::uint64_t address_of_region(std::size_t index) {
  return ((first_buffer_window + index) << 32) + buffer_start;
}

/// What is known to have happened: accesses of a thread, or of all threads of a block, up to a time.
struct knowledge {
  std::map<std::uint32_t, std::uint32_t> threads, blocks;
  bool empty() const { return threads.empty() && blocks.empty(); }
  void join(knowledge const& o) {
    for (auto [k, t] : o.threads) threads[k] = std::max(threads[k], t);
    for (auto [k, t] : o.blocks) blocks[k] = std::max(blocks[k], t);
  }
  bool covers(std::uint32_t thread, std::uint32_t block, std::uint32_t time) const {
    auto const t = threads.find(thread);
    if (t != threads.end() && time <= t->second) return true;
    auto const b = blocks.find(block);
    return b != blocks.end() && time <= b->second;
  }
};

}  // namespace neap::testing::ptx
