// Several pools of memory for records on several streams: memory/forms/pools.hpp with the lives of memory/streams/streams.hpp.
#pragma once

#include <neap/memory/forms/pools.hpp>
#include <neap/memory/streams/stream_records.hpp>
#include <neap/memory/streams/streams.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

struct pooled_stream_plan {
  pooled_plan plan;
  std::vector<stream_wait> waits;  ///< hand-overs across streams, within a pool, that the offsets make use of
};

namespace detail {

struct stream_pooling {
  stream_problem const& p;
  conflict_problem conflicts;

  std::size_t count() const { return p.count(); }
  std::int64_t size(std::uint32_t i) const { return p.size[i]; }
  pool_wish wish(std::uint32_t i) const { return {p.pool_of(i), -1}; }
  memory_plan within(std::vector<std::uint32_t> const& in, std::int64_t capacity, std::int64_t nodes) const {
    return plan_conflicts(conflicts.subset(in), capacity, nodes, in.size() <= stream_options{}.exact_limit);
  }
  /// The heaviest of the cliques that grow from each record (with windows, from each part) by size, each member with the
  /// bytes that it is in conflict with; or a fixed record that ends higher, alone.
  std::int64_t crowd(std::vector<std::uint32_t> const& in,
                     std::vector<std::pair<std::uint32_t, double>>& members) const {
    struct portion {
      std::uint32_t record, part;  // part: the record again, without windows
      std::int64_t bytes;
    };
    bool const windows = conflicts.has_windows();
    std::vector<portion> portions;
    std::int64_t heaviest = -1;
    std::vector<std::uint32_t> best;
    for (auto i : in) {
      auto const end = size(i) + std::max<std::int64_t>(conflicts.fixed_of(i), 0);
      if (end > heaviest) heaviest = end, best.assign(1, i);
      if (!windows) portions.push_back({i, i, size(i)});
      else
        for (auto x = conflicts.part_begin[i]; x < conflicts.part_begin[i + 1]; ++x)
          portions.push_back({i, x, conflicts.part_to[x] - conflicts.part_from[x]});
    }
    std::stable_sort(portions.begin(), portions.end(),
                     [](portion const& a, portion const& b) { return a.bytes > b.bytes; });
    auto const& meet = windows ? conflicts.parts_meet : conflicts.meets;
    std::vector<portion> clique;
    for (auto const& seed : portions) {
      clique.assign(1, seed);
      auto bytes = seed.bytes;
      for (auto const& y : portions)
        if (std::all_of(clique.begin(), clique.end(), [&](portion const& x) { return meet(x.part, y.part); }))
          clique.push_back(y), bytes += y.bytes;
      if (bytes <= heaviest) continue;
      heaviest = bytes, best.clear();
      for (auto const& x : clique) best.push_back(x.record);
    }
    members.clear();
    for (auto i : best) {
      double beside = 0;
      for (auto j : in)
        if (conflicts.meets(i, j)) beside += static_cast<double>(size(j));
      members.emplace_back(i, beside);
    }
    return heaviest;
  }
};

}  // namespace detail

/// plan_pools() for records on several streams. `across`: whether bytes may be handed over between streams, at a wait
/// each; a price has no place here, since pools are judged by time. O(records^3) where records must spill.
inline pooled_stream_plan plan_pools(stream_problem const& p, std::span<memory_pool const> pools, bool across = true,
                                     std::size_t exact_limit = 12) {
  pooled_stream_plan out;
  if (out.plan.why = fault_of(p); !out.plan.why.empty()) return out;
  out.plan = detail::fill_pools(detail::stream_pooling{p, {p, across}}, pools, exact_limit);
  if (!has_offsets(out.plan.status)) return out;
  for (std::uint32_t a = 0; a < p.count(); ++a)
    for (std::uint32_t b = 0; b < p.count(); ++b)
      if (out.plan.pool_of[a] == out.plan.pool_of[b] && out.plan.piece_of[a] == out.plan.piece_of[b])
        detail::add_waits(p, out.plan.offsets, a, b, out.waits);
  return out;
}

}}  // namespace neap::v0
