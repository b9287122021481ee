// The orders in which planners prefer records: MiniMalloc's keys, largest first, ties to the earlier record.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/records.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace neap { inline namespace v0 {

/// What a record is ranked by. `total`: the largest load it lives through. `width`: how long it lives.
/// `area`: size times width. `lower`: earliest first.
enum class rank_key : std::uint8_t { total, width, area, size, lower };

/// Three keys, compared one after the other.
struct rank_order {
  rank_key first, second, third;
  bool by_section =
      false;  ///< widths in sections (memory/sections.hpp) instead of time: the clock's scale is no matter
  friend constexpr bool operator==(rank_order, rank_order) = default;
};

inline constexpr rank_order order_twa{rank_key::total, rank_key::width, rank_key::area};
inline constexpr rank_order order_taw{rank_key::total, rank_key::area, rank_key::width};
inline constexpr rank_order order_wat{rank_key::width, rank_key::area, rank_key::total};
inline constexpr rank_order order_awt{rank_key::area, rank_key::width, rank_key::total};

namespace detail {

/// The records by rank: result[k] is the k-th preferred. `total` and `ranges` are read where the order needs them.
constexpr std::vector<std::uint32_t> ranked(memory_problem const& p, rank_order order,
                                            std::vector<std::int64_t> const& total,
                                            plain_vector<section_range> const& ranges) {
  auto const width = [&](std::size_t i) {
    return order.by_section ? std::int64_t{ranges[i].end} - ranges[i].begin : p.upper[i] - p.lower[i];
  };
  auto const value = [&](rank_key k, std::size_t i) -> std::int64_t {
    switch (k) {
      case rank_key::total: return total[i];
      case rank_key::width: return width(i);
      case rank_key::size: return p.size[i];
      case rank_key::lower: return -p.lower[i];
      case rank_key::area: {  // beyond 2^53 ties are blurred: that changes a preference, never a plan's validity
        auto const a = static_cast<double>(p.size[i]) * static_cast<double>(width(i));
        return a < 9e18 ? static_cast<std::int64_t>(a) : std::int64_t{9000000000000000000};
      }
    }
    return 0;
  };
  struct entry {
    std::int64_t a, b;
    std::uint32_t record;
  };
  plain_vector<entry> entries(p.count(), entry{});
  for (std::size_t i = 0; i < p.count(); ++i)
    entries[i] = {value(order.first, i), value(order.second, i), static_cast<std::uint32_t>(i)};
  detail::sort_list(entries, [&](entry const& x, entry const& y) {
    if (x.a != y.a) return x.a > y.a;
    if (x.b != y.b) return x.b > y.b;
    auto const cx = value(order.third, x.record), cy = value(order.third, y.record);
    if (cx != cy) return cx > cy;
    return x.record < y.record;
  });
  std::vector<std::uint32_t> by_rank(p.count(), 0);
  for (std::size_t i = 0; i < by_rank.size(); ++i) by_rank[i] = entries[i].record;
  return by_rank;
}

/// The largest load that each stretch lives through.
constexpr std::vector<std::int64_t> totals(sectioned const& s, std::vector<std::int64_t> const& sizes) {
  std::vector<std::int64_t> load(s.count + 1, 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) load[s.ranges[i].begin] += sizes[i], load[s.ranges[i].end] -= sizes[i];
  for (std::size_t k = 1; k < load.size(); ++k) load[k] += load[k - 1];
  load.pop_back();
  range_maximum const most(load);
  std::vector<std::int64_t> out(sizes.size(), 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) out[i] = most(s.ranges[i].begin, s.ranges[i].end);
  return out;
}

}  // namespace detail

}}  // namespace neap::v0
