// Memory of an interpreted launch. Every buffer is a region of its own with wide red zones. Each byte has a shadow:
// whether it was written, and its last accesses, from which races are found.
#pragma once

#include "report.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
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

struct region {
  std::string name;  // "buffer 2", "shared variable 'tile'"
  std::vector<std::uint8_t> bytes, state;
  std::vector<shadow_cell> shadow;
  bool constant = false;

  region(std::string n, std::size_t size, bool written)
      : name(std::move(n)),
        bytes(size, 0xcd),
        state(size, written),
        shadow(size) {}
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
