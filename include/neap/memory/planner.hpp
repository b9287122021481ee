// The concept that every memory planner meets, and the planner to use when nothing is known about the records.
#pragma once

#include <neap/memory/bounds.hpp>
#include <neap/memory/greedy_by_size.hpp>
#include <neap/memory/plateau.hpp>
#include <neap/memory/records.hpp>

#include <concepts>
#include <cstddef>
#include <utility>

namespace neap::inline v0 {

/// A function object from records to a plan. `p(records)` takes any usage_range.
/// Promise: deterministic; a plan with offsets passes verify(records, plan); `lower_bound_bytes` is proved; faulty
/// records give status infeasible and say why; no exceptions but for lack of memory.
template <class P>
concept memory_planner = requires(P const& planner, memory_problem const& problem) {
  { planner(problem) } -> std::same_as<memory_plan>;
};

/// Lowest plateaus in several orders, then greedy by size if the bound was not met: near optimal on training lifetimes
/// in well under a microsecond a record. Greedy by size is quadratic, so it is left out beyond `greedy_limit` records
/// unless it is needed (fixed offsets, gaps).
struct default_planner {
  std::size_t greedy_limit = 20000;

  constexpr memory_plan operator()(memory_problem const& p) const {
    if (!p.fixed.empty()) return greedy_by_size{}(p);
    memory_plan best = lowest_plateaus{}(p);
    if (best.status != plan_status::feasible) return best;
    if (p.count() > greedy_limit && p.gap_begin.empty()) return best;
    memory_plan other = greedy_by_size{}(p);
    return other.arena_bytes < best.arena_bytes ? std::move(other) : std::move(best);
  }
};

}  // namespace neap::inline v0
