// What a capacity leaves free, as records: with them every moment is full, and what follows from full moments follows
// everywhere. A packing with them is one without them; the other way round only where the free bytes lie together as the
// fillers say.
//
//   free bytes over time        fillers: they begin where the free bytes rise, and end where these fall by as much
//       ___                        a:  |---------|
//    __|   |____                   b:     |--|
//   |           |__
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace neap::inline v0::detail {

struct filler {
  std::int64_t lower, upper, size;
};

/// Records that fill all moments between the first and the last up to `capacity`, which no moment passes. For lives
/// without holes. O(n log n) for n records, and some hundred steps at each fall of the free bytes.
constexpr plain_vector<filler> fillers_of(memory_problem const& p, std::int64_t capacity) {
  struct change {
    std::int64_t at, free;
  };
  plain_vector<change> changes;
  for (std::size_t i = 0; i < p.count(); ++i)
    if (p.occupies(i)) changes.push_back({p.lower[i], -p.size[i]}), changes.push_back({p.upper[i], p.size[i]});
  if (changes.empty()) return {};
  detail::sort_list(changes, [](change const& a, change const& b) { return a.at < b.at; });
  changes.front().free += capacity, changes.back().free -= capacity;
  plain_vector<filler> open, closed;
  for (std::size_t k = 0; k < changes.size();) {
    auto const now = changes[k].at;
    std::int64_t rise = 0;
    for (; k < changes.size() && changes[k].at == now; ++k) rise += changes[k].free;
    auto const close = [&](std::size_t at) {
      open[at].upper = now;
      closed.push_back(open[at]);
      rise += open[at].size;
      open.erase(&open[at], &open[at] + 1);
    };
    // As few of the latest as possible, where they are together as large as the fall; else the latest, and what is too
    // much begins anew.
    auto const looked_at = std::min<std::size_t>(open.size(), 6), first = open.size() - looked_at;
    std::uint32_t least = 0;
    for (std::uint32_t set = 1; rise < 0 && set < 1u << looked_at; ++set) {
      if (std::popcount(set) >= (least != 0 ? std::popcount(least) : 4)) continue;
      std::int64_t bytes = 0;
      for (std::size_t i = 0; i < looked_at; ++i)
        if (set >> i & 1) bytes += open[first + i].size;
      if (bytes == -rise) least = set;
    }
    for (std::size_t i = looked_at; i-- > 0;)
      if (least >> i & 1) close(first + i);
    while (rise < 0) close(open.size() - 1);
    if (rise > 0) open.push_back({now, now, rise});
  }
  return closed;
}

}  // namespace neap::inline v0::detail
