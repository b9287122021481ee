// The bodies of <neap/memory/exact_placing.hpp>.
#pragma once

#include <neap/memory/exact_placing.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/memory/combine.hpp>
#include <neap/memory/exact/exact.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC memory_plan exact_placing::operator()(memory_problem const& p) const {
  constexpr std::int64_t max_records = 3000;  // the search keeps all records at each of its levels
  constexpr std::int64_t records_a_node = 300, placements_a_node = 5;
  constexpr double placements_a_second = 250'000;
  auto const n = static_cast<std::int64_t>(p.count());
  memory_plan plan =
      n > max_records
          ? default_planner{}(p)
          : exact{.budget = {.nodes = nodes * records_a_node / std::max(n, records_a_node), .seconds = seconds / 2}}
                .smallest(p);
  plan.work = plan.work * std::max(n, records_a_node) / records_a_node;
  if (plan.status != plan_status::feasible) return plan;
  memory_plan other = default_planner{.max_placements = 0}(p);
  auto const placements = std::max(placements_a_node * nodes, default_planner{}.improvement(p).placements);
  auto const affordable =
      static_cast<std::int64_t>(std::min(static_cast<double>(placements), placements_a_second * seconds / 2));
  detail::improve_plan(p, other, {affordable});
  other.work = affordable / placements_a_node;
  detail::keep_better(plan, static_cast<memory_plan&&>(other));
  return plan;
}

}  // namespace detail
}}  // namespace neap::v0
