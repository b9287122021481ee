// The planner for records that the default one leaves loose: the exact search, then a longer improvement where that has not
// met the load bound, and the better of both. For those who want the answer alone: a program that is compiled apart does
// not read the search behind it, a tenth of the library, in each of its files.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/memory/planner.hpp>
#include <neap/memory/records.hpp>

#include <cstdint>

#if NEAP_READS_BODIES
#include <neap/memory/combine.hpp>
#include <neap/memory/exact/exact.hpp>

#include <algorithm>
#endif

namespace neap::inline v0 {

namespace detail {

/// `exact` on one thread, of problems without windows, within so many nodes, of some hundred records each, and half of so
/// many seconds. Where that has not met the load bound, as many nodes and seconds again for a longer improvement than the
/// default planner's, of 5 placements a node, which take about as long. Never worse than that planner, if there are
/// seconds for it. The plan's work is in these nodes: at most twice as many as are granted.
struct exact_placing {
  std::int64_t nodes;
  double seconds;

  memory_plan operator()(memory_problem const& p) const;
};

#if NEAP_READS_BODIES
NEAP_ONCE memory_plan exact_placing::operator()(memory_problem const& p) const {
  constexpr std::int64_t most_records = 3000;  // the search keeps all records at each of its levels
  constexpr std::int64_t records_a_node = 300, placements_a_node = 5;
  constexpr double placements_a_second = 250'000;
  auto const n = static_cast<std::int64_t>(p.count());
  memory_plan plan =
      n > most_records
          ? default_planner{}(p)
          : exact{.budget = {.nodes = nodes * records_a_node / std::max(n, records_a_node), .seconds = seconds / 2}}
                .smallest(p);
  plan.work = plan.work * std::max(n, records_a_node) / records_a_node;
  if (plan.status != plan_status::feasible) return plan;
  memory_plan other = default_planner{.most_placements = 0}(p);
  auto const placements = std::max(placements_a_node * nodes, default_planner{}.improvement(p).placements);
  auto const affordable =
      static_cast<std::int64_t>(std::min(static_cast<double>(placements), placements_a_second * seconds / 2));
  detail::improve_plan(p, other, {affordable});
  other.work = affordable / placements_a_node;
  detail::keep_better(plan, static_cast<memory_plan&&>(other));
  return plan;
}
#endif

}  // namespace detail

}  // namespace neap::inline v0
