// Small memory problems solved by trying every offset, for the tests of planners that claim to be exact.
#pragma once

#include <neap/memory/records.hpp>

#include "../support/sanitized.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace neap_memory_test {

using neap::usage_record;

inline constexpr int rounds = neap::testing::sanitized ? 5000 : 100000;

/// Every offset of every record, byte by byte on a small board: bit b of board[t] is byte b at moment t.
/// Heights up to 63, moments 0 to 9.
struct board {
  static constexpr std::int64_t moments = 10;
  std::array<std::uint64_t, moments> bytes{};
  std::vector<usage_record> const& records;
  std::vector<std::size_t> order;

  /// Of the records whose bits are set in `mask`; all, if it is left out.
  explicit board(std::vector<usage_record> const& r, std::uint64_t mask = ~std::uint64_t{0}) : records(r) {
    for (std::size_t i = 0; i < r.size(); ++i)
      if (mask >> i & 1) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      bool const fa = records[a].offset != neap::any_offset, fb = records[b].offset != neap::any_offset;
      if (fa != fb) return fa;
      return records[a].size * (records[a].upper - records[a].lower) >
             records[b].size * (records[b].upper - records[b].lower);
    });
  }
  /// Which of a record's bytes are in use at a moment: [first, second).
  static std::pair<std::int64_t, std::int64_t> in_use(usage_record const& r, std::int64_t t) {
    for (auto const& g : r.gaps)
      if (g.lower <= t && t < g.upper) return {g.window_lower, g.window_upper};
    return {0, r.size};
  }
  static std::uint64_t stretch(usage_record const& r, std::int64_t t) {
    auto const [from, to] = in_use(r, t);
    return ((std::uint64_t{1} << to) - 1) & ~((std::uint64_t{1} << from) - 1);
  }
  bool fits(std::int64_t height, std::size_t k = 0) {
    if (k == order.size()) return true;
    usage_record const& r = records[order[k]];
    bool const occupies = r.size > 0 && r.upper > r.lower;
    std::int64_t const first = r.offset != neap::any_offset ? r.offset : 0;
    std::int64_t const last = r.offset != neap::any_offset ? r.offset : occupies ? height - r.size : 0;
    for (std::int64_t at = first; at <= last && at + r.size <= height; at += r.alignment) {
      bool free = true;
      for (auto t = r.lower; t < r.upper; ++t) free &= (bytes[static_cast<std::size_t>(t)] & stretch(r, t) << at) == 0;
      if (!free) continue;
      for (auto t = r.lower; t < r.upper; ++t) bytes[static_cast<std::size_t>(t)] |= stretch(r, t) << at;
      bool const done = fits(height, k + 1);
      for (auto t = r.lower; t < r.upper; ++t) bytes[static_cast<std::size_t>(t)] &= ~(stretch(r, t) << at);
      if (done) return true;
    }
    return !occupies && r.offset == neap::any_offset;
  }
};

/// The most bytes in use at one moment by the records of `mask`, or the end of one that is fixed.
inline std::int64_t load_of(std::vector<usage_record> const& records, std::uint64_t mask = ~std::uint64_t{0}) {
  std::array<std::int64_t, board::moments> at{};
  std::int64_t most = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    usage_record const& r = records[i];
    if (!(mask >> i & 1)) continue;
    if (r.offset != neap::any_offset) most = std::max(most, r.offset + r.size);
    for (auto t = r.lower; t < r.upper; ++t) {
      auto const [from, to] = board::in_use(r, t);
      at[static_cast<std::size_t>(t)] += to - from;
    }
  }
  return std::max(most, *std::max_element(at.begin(), at.end()));
}

struct kind {
  bool aligned, gaps, fixed, windows = false;
};

inline std::vector<usage_record> random_records(std::mt19937_64& rng, kind k) {
  auto const below = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng() % n); };
  std::vector<usage_record> records(2 + rng() % 5);
  std::int64_t const shared = k.aligned && rng() % 4 == 0 ? 3 + below(4) : 1;
  for (auto& r : records) {
    r.lower = below(board::moments - 1);
    r.upper = std::min<std::int64_t>(board::moments, r.lower + 1 + below(6));
    r.size = 1 + below(5);
    if (shared > 1) r.alignment = shared;
    else if (k.aligned && rng() % 2) r.alignment = std::array<std::int64_t, 4>{2, 3, 4, 6}[rng() % 4];
    if (k.gaps && r.upper - r.lower > 2 && rng() % 2) {
      auto const lo = r.lower + 1 + below(static_cast<std::uint64_t>(r.upper - r.lower - 2));
      r.gaps.push_back({lo, lo + 1, 0, 0});
      if (k.windows && rng() % 4) {
        r.gaps[0].window_lower = below(static_cast<std::uint64_t>(r.size));
        r.gaps[0].window_upper =
            r.gaps[0].window_lower + 1 + below(static_cast<std::uint64_t>(r.size - r.gaps[0].window_lower));
      }
    }
    if (k.fixed && rng() % 4 == 0) r.offset = r.alignment * below(5);
  }
  return records;
}

}  // namespace neap_memory_test
