// The concept that every memory planner meets, and the planner to use when nothing is known about the records.
#pragma once

#include <neap/memory/bounds.hpp>
#include <neap/memory/greedy/first_fit.hpp>
#include <neap/memory/greedy/greedy_by_size.hpp>
#include <neap/memory/greedy/improve.hpp>
#include <neap/memory/greedy/plateau.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

/// A function object from records to a plan. `p(records)` takes any usage_range.
/// Promise: deterministic; a plan with offsets passes verify(records, plan); `lower_bound_bytes` is proved; faulty
/// records give status infeasible and say why; no exceptions but for lack of memory.
template <class P>
concept memory_planner = requires(P const& planner, memory_problem const& problem) {
  { planner(problem) } -> std::same_as<memory_plan>;
};

namespace detail {
/// Checked where a user's planner enters.
template <class P>
constexpr bool check_planner() {
  static_assert(memory_planner<P>,
                "neap: this is no memory planner: it lacks  neap::memory_plan operator()(neap::memory_problem const&) "
                "const");
  return true;
}
/// A planner's plan. One that has not as many offsets as there are records is none, and says so.
template <memory_planner P>
constexpr memory_plan ask(P const& planner, memory_problem const& p) {
  memory_plan plan = planner(p);
  if (has_offsets(plan) && plan.offsets.size() != p.count())
    return refused({"the planner gave another number of offsets than there are records"});
  return plan;
}
}  // namespace detail

/// Lowest plateaus first: they meet the bound on the lifetimes of training in well under a microsecond a record. Where
/// they do not, greedy by size for few records, then improvement (memory/greedy/improve.hpp) with 16 placements a record and
/// `max_placements` in all. Of more than `many` records only one order of plateaus is tried, and what is improved are
/// the moments that decide the arena. O(n log n) time in practice, O(n) memory.
struct default_planner {
  std::size_t greedy_limit = 2000;  ///< greedy by size takes time in n^2: not for more records than these
  std::int64_t max_placements = 300'000;
  std::size_t many = 100'000;
  early_end ended{};  ///< improvement ends early

  constexpr memory_plan operator()(memory_problem const& p) const {
    bool const few = p.count() <= greedy_limit;
    memory_plan best;
    if (p.fixed.empty()) best = lowest_plateaus{p.count() > many ? 1 : 4}(p);
    if (best.status == plan_status::feasible && (few || !p.fixed.empty() || !p.gap_begin.empty())) {
      memory_plan other = few ? greedy_by_size{}(p) : first_fit{{2, 2}}(p);
      if (!p.fixed.empty() || other.arena_bytes < best.arena_bytes) best = static_cast<memory_plan&&>(other);
    }
    detail::improve_plan(p, best, improvement(p));
    return best;
  }

  /// What is spent on improvement.
  constexpr improve_budget improvement(memory_problem const& p) const {
    return {std::min(16 * static_cast<std::int64_t>(p.count()), max_placements), ended};
  }
};

}}  // namespace neap::v0
