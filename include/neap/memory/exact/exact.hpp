// The exact planner: the least arena, or the best found within a budget and a proved bound.
//
// Capacities are decided one after another (memory/exact/feasibility_search.hpp), or several at once by threads; memory/exact/probes.hpp
// chooses them.
#pragma once

#include <neap/core/worker_team.hpp>
#include <neap/memory/bounds.hpp>
#include <neap/memory/exact/feasibility.hpp>
#include <neap/memory/exact/feasibility_search.hpp>
#include <neap/memory/exact/policy.hpp>
#include <neap/memory/exact/probes.hpp>
#include <neap/memory/planner.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {
struct exact_placing;
}

/// What a search may spend: whichever ends first. Nodes are deterministic, seconds are not.
struct node_budget {
  std::int64_t nodes = 10'000'000;
  double seconds = std::numeric_limits<double>::infinity();
};

/// The exact planner. Alignment, fixed offsets, gaps and windows in gaps are searched in full: with windows first as if
/// the records were whole there, which is quick, then by memory/exact/window_search.hpp.
/// The arena is never larger than the default planner's, if the budget allows its improvement, which comes after the
/// first question. Gives optimal or feasible (budget spent, with the best plan and the proved bound); with a capacity also
/// infeasible (proved) and budget_spent. O(n) memory a level of the search: more than `max_records` are placed as the
/// default planner places them.
struct exact {
  /// That are searched for: with so many a search without a failure takes about a gigabyte.
  static constexpr std::size_t max_records = 8192;

  std::int64_t capacity = -1;  ///< bytes; -1: find the smallest arena, else any plan within the capacity
  node_budget budget{};
  search_tricks tricks{};
  /// Several capacities are decided at once; one capacity, by several orders at once. Neither plan nor bound, status or
  /// count of nodes depend on the number (with a budget in nodes).
  unsigned threads = 1;

  memory_plan operator()(memory_problem const& p) const;

 private:
  friend detail::exact_placing;
  /// The smallest arena of a problem without windows, on one thread: what places plans needs no more, and a program that
  /// asks for no more does not compile the rest.
  memory_plan smallest(memory_problem const& p) const {
    memory_plan const plan = default_planner{.max_placements = 0}(p);
    if (!has_offsets(plan) || plan.status == plan_status::optimal) return plan;
    detail::feasibility_without_windows const decide(p, tricks);
    return in_turn(p, plan, decide, detail::stop_condition::after_seconds(budget.seconds));
  }

  template <class Search>
  memory_plan in_turn(memory_problem const& p, memory_plan const& plan, Search& decide,
                      detail::stop_condition const& stop) const {
    return closing_in(
        p, plan, decide.unit(), stop,
        [&](detail::capacity_walk const&, detail::probe asked, std::int64_t) { return decide(asked, nullptr, stop); });
  }

  /// The best plan when the walk is done or the budget spent; `answer(walk, probe, nodes left)` decides.
  template <class Answer>
  memory_plan closing_in(memory_problem const& p, memory_plan plan, std::int64_t unit,
                         detail::stop_condition const& stop, Answer&& answer) const {
    load_bound const bound{plan.lower_bound_bytes, plan.moment};
    // Where nodes are few, a question that they would all go into leaves none for capacities that are easier; but less
    // than a search without a failure takes is of no use.
    auto const most =
        std::max(budget.nodes / detail::exact_policy::least_probes + 1, detail::nodes_of_descent(p.count()));
    detail::capacity_walk walk(bound.bytes, plan.arena_bytes, unit, detail::exact_policy::first_probe_nodes, most);
    std::int64_t left = budget.nodes;
    for (bool improved = false; !walk.done() && left > 0 && !stop.passed();) {
      auto asked = walk.next();
      asked.nodes = std::min(asked.nodes, left);
      detail::probe_answer found = answer(walk, asked, left);
      left -= found.nodes;
      if (found.fits == detail::feasibility::yes) plan = detail::finished(p, std::move(found.offsets), bound);
      walk.learn(asked, found.fits, plan.arena_bytes);
      if (!std::exchange(improved, true)) {
        detail::improve_plan(p, plan, improvement(p));
        walk.learn_of(plan.arena_bytes);
      }
    }
    plan.lower_bound_bytes = walk.bound();
    if (walk.done()) plan.status = plan_status::optimal;
    plan.work = budget.nodes - left;
    return plan;
  }

  /// As the default planner's, so that no plan is worse than its, as far as there are seconds for it.
  improve_budget improvement(memory_problem const& p) const {
    auto budgeted = default_planner{}.improvement(p);
    auto const many = std::max(1.0, static_cast<double>(p.count()) / detail::exact_policy::few_records);
    if (double const affordable = budget.seconds * detail::exact_policy::placements_a_second / many;
        affordable < static_cast<double>(budgeted.placements))
      budgeted.placements = static_cast<std::int64_t>(affordable);
    return budgeted;
  }

  /// The plan, if it is within the capacity; else what is known about the capacity.
  memory_plan limited(memory_plan plan, bool impossible = false) const;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/exact/impl/exact.ipp>
#endif
