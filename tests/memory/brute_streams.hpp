// Small problems on several streams, and their solution by trying every offset, for the tests of planners and verifier.
#pragma once

#include "brute_force.hpp"

#include <neap/memory/streams/stream_records.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace neap_memory_test {

using neap::stream_record;

inline constexpr std::size_t max_streamed = 8;

/// Records of ops on two or three streams with random waits between them; clocks follow from the waits.
inline std::vector<stream_record> random_streams(std::mt19937_64& rng, kind k, std::size_t least, std::size_t more) {
  std::size_t const streams = 2 + rng() % 2;
  std::vector<stream_record> records(least + rng() % more);
  std::vector<std::vector<std::int64_t>> seen(streams, std::vector<std::int64_t>(streams, 0));  // ended ops known to s
  auto const wait = [&](std::size_t s, std::vector<std::int64_t> const& clock) {
    for (std::size_t c = 0; c < streams; ++c) seen[s][c] = std::max(seen[s][c], clock[c]);
  };
  for (std::size_t at = 0; at < records.size(); ++at) {
    auto& r = records[at];
    auto const s = rng() % streams;
    if (auto const other = rng() % streams; rng() % 2) wait(s, seen[other]);  // for all that was begun there
    r.stream = static_cast<std::int32_t>(s);
    r.size = 1 + static_cast<std::int64_t>(rng() % 5);
    if (k.aligned && rng() % 2) r.alignment = std::array<std::int64_t, 3>{2, 3, 4}[rng() % 3];
    if (k.fixed && rng() % 4 == 0) r.offset = r.alignment * static_cast<std::int64_t>(rng() % 5);
    r.born = seen[s];
    seen[s][s] += 1 + static_cast<std::int64_t>(rng() % 2);
    r.dies = std::vector<std::int64_t>(streams, 0);
    r.dies[s] = seen[s][s] + static_cast<std::int64_t>(rng() % 2);
    if (rng() % 4 == 0) {  // also read on another stream
      auto const c = rng() % streams;
      seen[c][c] += 1;
      r.dies[c] = std::max(r.dies[c], seen[c][c]);
    }
    if (!k.gaps || at == 0 || rng() % 3 != 0) continue;
    auto& again = records[rng() % at];  // an earlier record is written anew, here or on another stream
    auto const by = rng() % streams;
    wait(by, again.dies);
    again.gaps.push_back({again.dies, seen[by]});
    if (k.windows && rng() % 2) {
      auto const from = static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(again.size));
      again.gaps.back().window_lower = from;
      again.gaps.back().window_upper =
          from + 1 + static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(again.size - from));
    }
    seen[by][by] += 1;
    again.dies = std::vector<std::int64_t>(streams, 0);
    again.dies[by] = seen[by][by];
  }
  if (rng() % 16 == 0 && records[0].gaps.empty()) records[0].size = 0;
  return records;
}

/// The bytes [from, to) of a record, in use for a while.
struct life {
  std::vector<std::int64_t> born, dies;
  std::int64_t from, to;
};

inline std::vector<life> lives_of(stream_record const& r) {
  std::vector<life> out;
  auto born = r.born;
  for (auto const& g : r.gaps) out.push_back({born, g.dies, 0, r.size}), born = g.born;
  out.push_back({born, r.dies, 0, r.size});
  for (std::size_t k = 0; k < r.gaps.size(); ++k)  // a window is in use from part to part
    if (auto const& g = r.gaps[k]; g.window_upper > g.window_lower)
      out.push_back({out[k].born, out[k + 1].dies, g.window_lower, g.window_upper});
  return out;
}

/// Whether every op of which `a` waits for the end has ended when `b` is born: written out once more, for the check.
inline bool frees_for(life const& a, life const& b) {
  bool all = true;
  for (std::size_t s = 0; s < a.dies.size(); ++s) all = all && a.dies[s] <= b.born[s];
  return all;
}

/// Records with what of them may not share bytes; all offsets are tried.
struct stream_board {
  struct clash {
    std::int64_t from, to, other_from, other_to;
  };
  std::vector<stream_record> const& records;
  std::array<unsigned, max_streamed> apart{};  // pairs that may share all bytes
  std::array<unsigned, max_streamed> whole{};  // pairs that may share none
  std::array<std::array<std::vector<clash>, max_streamed>, max_streamed> clashes{};
  std::array<std::int64_t, max_streamed> at{};

  stream_board(std::vector<stream_record> const& r, bool across) : records(r) {
    std::array<std::vector<life>, max_streamed> lives;
    for (std::size_t a = 0; a < r.size(); ++a) {
      lives[a] = lives_of(r[a]);
      for (std::size_t b = 0; b < a; ++b) {
        if (r[a].size > 0 && r[b].size > 0)
          for (auto const& x : lives[a])
            for (auto const& y : lives[b]) {
              if ((across || r[a].stream == r[b].stream) && (frees_for(x, y) || frees_for(y, x))) continue;
              clashes[a][b].push_back({x.from, x.to, y.from, y.to});
              if (x.to - x.from == r[a].size && y.to - y.from == r[b].size) whole[a] |= 1u << b, whole[b] |= 1u << a;
            }
        if (clashes[a][b].empty()) apart[a] |= 1u << b, apart[b] |= 1u << a;
      }
    }
  }
  bool good(std::size_t k, std::size_t j) const {
    for (auto const& c : clashes[k][j])
      if (at[k] + c.from < at[j] + c.other_to && at[j] + c.other_from < at[k] + c.to) return false;
    return true;
  }
  /// Of the records whose bits are set in `mask`.
  bool fits(std::int64_t height, unsigned mask = ~0u, std::size_t k = 0) {
    if (k == records.size()) return true;
    if (!(mask >> k & 1)) return fits(height, mask, k + 1);
    stream_record const& r = records[k];
    bool const fixed = r.offset != neap::any_offset;
    for (std::int64_t x = fixed ? r.offset : 0; x + r.size <= height; x += r.alignment) {
      at[k] = x;
      bool free = true;
      for (std::size_t j = 0; free && j < k; ++j) free = !(mask >> j & 1) || good(k, j);
      if (free && fits(height, mask, k + 1)) return true;
      if (fixed) return false;
    }
    return false;
  }
  /// The most bytes of records of `mask` that are all in conflict with one another, or the end of one that is fixed.
  std::int64_t load(unsigned mask = ~0u) const {
    std::int64_t most = 0;
    mask &= (1u << records.size()) - 1;
    for (std::size_t k = 0; k < records.size(); ++k)
      if ((mask >> k & 1) && records[k].offset >= 0) most = std::max(most, records[k].offset + records[k].size);
    for (unsigned part = mask; part != 0; part = (part - 1) & mask) {
      std::int64_t bytes = 0;
      bool all = true;
      for (std::size_t k = 0; k < records.size(); ++k)
        if (part >> k & 1) bytes += records[k].size, all = all && ((whole[k] | 1u << k) & part) == part;
      if (all) most = std::max(most, bytes);
    }
    return most;
  }
  /// The least height, or -1 where fixed records collide.
  std::int64_t optimum() {
    unsigned only_fixed = 0;
    for (std::size_t k = 0; k < records.size(); ++k)
      if (records[k].offset != neap::any_offset) only_fixed |= 1u << k;
    if (!fits(60, only_fixed)) return -1;
    auto height = load();
    while (!fits(height)) ++height;
    return height;
  }
};

}  // namespace neap_memory_test
