// The bodies of <neap/memory/exact/exact.hpp>.
#pragma once

#include <neap/memory/exact/exact.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC memory_plan exact::operator()(memory_problem const& p) const {
  memory_plan plan = default_planner{.max_placements = 0}(p);
  if (!has_offsets(plan) || plan.status == plan_status::optimal) return limited(plan);
  if (capacity >= 0 && (plan.arena_bytes <= capacity || plan.lower_bound_bytes > capacity)) return limited(plan);
  if (p.count() > max_records) {
    detail::improve_plan(p, plan, improvement(p));
    return limited(plan);
  }
  detail::feasibility_search decide(p, tricks);
  auto const stop = detail::stop_condition::after_seconds(budget.seconds);
  std::optional<worker_team> team;
  if (threads > 1) team.emplace(threads);
  auto* const all = team ? &*team : nullptr;
  if (capacity >= 0) {
    auto answer = decide({capacity, budget.nodes}, all, stop);
    if (answer.fits == detail::feasibility::yes)
      plan = detail::finished(p, std::move(answer.offsets), {plan.lower_bound_bytes, plan.moment});
    plan.work = answer.nodes;
    return limited(plan, answer.fits == detail::feasibility::no);
  }
  if (!team) return in_turn(p, plan, decide, stop);
  std::optional<detail::probes_ahead> ahead;  // made when the bound was not met
  bool first = true;
  return closing_in(p, plan, decide.unit(), stop,
                    [&](detail::capacity_walk const& walk, detail::probe asked, std::int64_t left) {
                      if (std::exchange(first, false)) return decide(asked, all, stop);
                      if (!ahead) ahead.emplace(decide, *team);
                      return (*ahead)(walk, asked, left, stop);
                    });
}

NEAP_FUNC memory_plan exact::limited(memory_plan plan, bool impossible) const {
  if (capacity < 0 || !has_offsets(plan) || plan.arena_bytes <= capacity) return plan;
  plan.offsets.clear();
  plan.arena_bytes = 0;
  if (plan.lower_bound_bytes > capacity) {
    plan.status = plan_status::infeasible;
    plan.why = {"the records alive at one moment alone pass the capacity"};
  } else if (impossible) {
    plan.status = plan_status::infeasible;
    plan.why = {"no placement stays within the capacity (proved by search)"};
    plan.lower_bound_bytes = capacity + 1;
  } else {
    plan.status = plan_status::budget_spent;
    plan.why = {"no placement within the capacity was found in the budget"};
  }
  return plan;
}

}}  // namespace neap::v0
