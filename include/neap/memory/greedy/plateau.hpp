// The lowest plateau: a greedy planner in n log n that meets the load bound on the lifetimes of training.
//
// The tops of the placed records form a skyline over time. At a plateau lower than both its neighbours the best-ranked
// unplaced record that fits into its span is put down, and splits it; where none fits, the plateau is raised to its
// lower neighbour. This is the first descent of the exact search (memory/exact/exact.hpp) without its list of candidates.
// Only a plateau's neighbours can change its fate, so the walk always goes to the nearest low one: neither a heap nor a
// jump through memory.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/bounds.hpp>
#include <neap/memory/greedy/rank.hpp>
#include <neap/memory/records.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// Unplaced records by first section; the best-ranked one inside a span is found by a pruned descent.
class span_index {
 public:
  /// `ranges[i]` and `rank[i]` of each record; ranges that are empty are never found.
  constexpr span_index(plain_vector<section_range> const& ranges, std::vector<std::uint32_t> const& by_rank,
                       std::uint32_t sections)
      : first_(sections + 1, 0),
        position_(ranges.size(), 0) {
    std::uint32_t count = 0;
    for (auto const& r : ranges)
      if (r.begin < r.end) ++first_[r.begin], ++count;
    std::uint32_t sum = 0;
    for (auto& f : first_) {
      auto const here = f;
      f = sum;
      sum += here;
    }
    while (leaves_ < count) leaves_ *= 2;
    nodes_.assign(2 * leaves_, {});
    std::vector<std::uint32_t> at(first_.begin(), first_.end());
    for (std::uint32_t k = 0; k < by_rank.size(); ++k) {
      auto const i = by_rank[k];
      if (ranges[i].begin >= ranges[i].end) continue;
      position_[i] = at[ranges[i].begin]++;
      nodes_[leaves_ + position_[i]] = {ranges[i].end, ranges[i].end, k};
    }
    for (std::size_t i = leaves_; i-- > 1;) pull(i);
  }

  /// The rank of the best record whose sections lie in [begin, end), or `none`.
  constexpr std::uint32_t best(std::uint32_t begin, std::uint32_t end) const {
    std::uint32_t found = none;
    std::size_t l = leaves_ + first_[begin], r = leaves_ + first_[end];
    for (; l < r; l /= 2, r /= 2) {
      if (l & 1) descend(l++, end, found);
      if (r & 1) descend(--r, end, found);
    }
    return found;
  }

  constexpr void erase(std::uint32_t record) {
    std::size_t i = leaves_ + position_[record];
    nodes_[i] = {};
    while ((i /= 2) > 0) {
      auto const before = nodes_[i];
      pull(i);
      if (nodes_[i] == before) break;
    }
  }

  static constexpr std::uint32_t none = 0xffffffffu;

 private:
  struct node {
    std::uint32_t least_end = none, greatest_end = 0, rank = none;
    constexpr bool operator==(node const&) const = default;
  };
  constexpr void pull(std::size_t i) {
    node const &a = nodes_[2 * i], &b = nodes_[2 * i + 1];
    nodes_[i] = {std::min(a.least_end, b.least_end), std::max(a.greatest_end, b.greatest_end),
                 std::min(a.rank, b.rank)};
  }
  constexpr void descend(std::size_t i, std::uint32_t end, std::uint32_t& found) const {
    node const& x = nodes_[i];
    if (x.rank >= found || x.least_end > end) return;
    if (x.greatest_end <= end) {
      found = x.rank;
      return;
    }
    bool const right_first = nodes_[2 * i + 1].rank < nodes_[2 * i].rank;
    descend(2 * i + right_first, end, found);
    descend(2 * i + !right_first, end, found);
  }

  std::vector<std::uint32_t> first_;     // of each section: the position of its first record
  std::vector<std::uint32_t> position_;  // of each record
  plain_vector<node> nodes_;
  std::size_t leaves_ = 1;
};

/// What all orders share: sections, totals, the bound.
struct plateau_facts {
  sectioned sections;
  plain_vector<section_range> ranges;  // of each record; empty for those that need no memory
  std::vector<std::int64_t> total;

  constexpr explicit plateau_facts(memory_problem const& p) : ranges(p.count(), section_range{}), total(p.count(), 0) {
    plain_vector<time_stretch> stretches;
    std::vector<std::int64_t> sizes;
    stretches.reserve(p.count()), sizes.reserve(p.count());
    for (std::size_t i = 0; i < p.count(); ++i)
      if (p.occupies(i)) stretches.push_back({p.lower[i], p.upper[i]}), sizes.push_back(p.size[i]);
    sections = cut_into_sections(stretches);
    auto const load = totals(sections, sizes);
    for (std::size_t i = 0, k = 0; i < p.count(); ++i)
      if (p.occupies(i)) ranges[i] = sections.ranges[k], total[i] = load[k++];
  }
};

/// Offsets by the lowest plateau, records preferred as in `by_rank`.
constexpr std::vector<std::int64_t> place_on_plateaus(memory_problem const& p, plateau_facts const& facts,
                                                      std::vector<std::uint32_t> const& by_rank) {
  std::vector<std::int64_t> offsets(p.count(), 0);
  if (facts.sections.count == 0) return offsets;
  span_index index(facts.ranges, by_rank, facts.sections.count);
  struct plateau {
    std::uint32_t begin, end;
    std::int64_t height;
  };
  plain_vector<plateau> left, right;  // the neighbours on either side, nearest last
  plateau here{0, facts.sections.count, 0};
  for (;;) {
    // Walk down to a plateau that no neighbour undercuts, merging equals on the way.
    if (!right.empty() && right.back().height <= here.height) {
      plateau const next = right.back();
      right.pop_back();
      if (next.height == here.height) {
        here.end = next.end;
      } else {
        left.push_back(here);
        here = next;
      }
      continue;
    }
    if (!left.empty() && left.back().height <= here.height) {
      plateau const next = left.back();
      left.pop_back();
      if (next.height == here.height) {
        here.begin = next.begin;
      } else {
        right.push_back(here);
        here = next;
      }
      continue;
    }
    auto const rank = index.best(here.begin, here.end);
    if (rank == span_index::none) {
      if (left.empty() && right.empty()) return offsets;
      if (right.empty() || (!left.empty() && left.back().height < right.back().height))
        here.height = left.back().height;
      else here.height = right.back().height;
      continue;
    }
    auto const i = by_rank[rank];
    index.erase(i);
    offsets[i] = align_up(here.height, p.alignment_of(i));
    auto const [lo, hi] = facts.ranges[i];
    plateau const raised{lo, hi, offsets[i] + p.size[i]};
    if (hi < here.end) right.push_back({hi, here.end, here.height});
    if (here.begin < lo) {
      right.push_back(raised);
      here.end = lo;
    } else {
      here = raised;
    }
  }
}

}  // namespace detail

/// One order of the lowest-plateau rule. Alignment is kept; a gap in a life is treated as life. Fixed offsets are not
/// for this planner (infeasible, and says so). O(n log n) in practice, O(n) memory.
struct lowest_plateau {
  rank_order order = order_twa;

  constexpr memory_plan operator()(memory_problem const& p) const {
    if (auto const wrong = fault_of(p); !wrong.empty()) return detail::refused(wrong);
    if (!p.fixed.empty())
      return detail::refused({"lowest_plateau: fixed offsets need greedy_by_size, first_fit or the exact search"});
    detail::plateau_facts const facts(p);
    return detail::finished(p, detail::place_on_plateaus(p, facts, detail::ranked(p, order, facts.total, facts.ranges)),
                            load_lower_bound(p));
  }
};

/// Several orders, the best plan kept, stopping at the first that meets the load bound.
struct lowest_plateaus {
  int orders = 4;  ///< at most so many, of four

  constexpr memory_plan operator()(memory_problem const& p) const {
    if (auto const wrong = fault_of(p); !wrong.empty()) return detail::refused(wrong);
    if (!p.fixed.empty())
      return detail::refused({"lowest_plateau: fixed offsets need greedy_by_size, first_fit or the exact search"});
    detail::plateau_facts const facts(p);
    load_bound const bound = load_lower_bound(p);
    memory_plan best;
    int tried = 0;
    for (rank_order order : {order_twa, order_taw, order_wat, order_awt}) {
      if (tried++ >= std::max(orders, 1)) break;
      auto plan = detail::finished(
          p, detail::place_on_plateaus(p, facts, detail::ranked(p, order, facts.total, facts.ranges)), bound);
      if (best.offsets.empty() || plan.arena_bytes < best.arena_bytes) best = static_cast<memory_plan&&>(plan);
      if (best.status == plan_status::optimal) break;
    }
    return best;
  }
};

}}  // namespace neap::v0
