// Sub-searches for the smallest peak, each with a scope of its own (search_state.hpp): where nothing meets a limit of memory,
// where what meets it is expensive, and for a moment while seeds take time.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_run.hpp>
#include <neap/optimize/stage_scope.hpp>
#include <neap/optimize/stages/neighbourhoods.hpp>

#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

void run_stages(search_run& run, phase now);  // search_stages.hpp

/// A goal without its limit of memory.
inline objective smallest_peak_within(objective const& limits) {
  return {.latency = limits.latency, .limits_latency = limits.limits_latency};
}

/// From the bases on, by seeds and exploration, towards the smallest peak within the limit of latency, until that meets the
/// limit of memory.
inline void search_smallest_peak(search_run& run) {
  auto& state = run.state;
  auto starts = std::exchange(run.starts, run.bases);
  state.best = nullptr;
  state.queue = run.bases;
  for (auto const& n : run.parts.bases().empty() ? run.bases : run.parts.bases())
    if (!state.best || state.beats(n->state.result, state.best->state.result)) state.best = n;
  state.seen.clear();
  state.seek(smallest_peak_within(state.active_limits));
  run_stages(run, phase::seeds);
  run_stages(run, phase::exploration);
  run.starts = std::move(starts);
}

/// Where seeds do not meet the limit of memory: the smallest peak, until it meets the limit. So limits that cannot be met
/// have one answer: what was found for the limit's sake has no part in it, and its budget does not depend on its begin.
inline void search_until_met(search_run& run) {
  auto& state = run.state;
  auto const best = state.best;
  auto inner = state.sub_search([&] {
    state.records_near_smallest = true;
    for (auto const& n : run.bases) state.note_near(n);
    state.budget.begin_reserved_budget();
    search_smallest_peak(run);
    while (state.is_met() && !run.placing.place()) {  // addresses need more: on to a smaller one
      state.seek(smallest_peak_within(state.active_limits));
      state.lower_target(state.best->state.result.peak_bytes);
      run.search();
      if (!run.has_strategy()) search_neighbourhoods(state, run.diving, 16 + state.epoch);
    }
    state.budget.end_sub_budget();
    state.records_near_smallest = false;
    if (state.beats(best->state.result, state.best->state.result)) state.best = best;
  });
  bool const met = inner.active_limits.fits(inner.best->state.result);
  if (!met) return state.restore_scope(std::move(inner));  // the smallest peak stays the goal
  state.active_limits = inner.active_limits, state.best = inner.best;
  state.queue.push_back(state.best);
  state.restart_from(std::move(state.queue));
}

/// Where the plan that meets the limit of memory is expensive: the smallest peak at a part of its price, until it meets the
/// limit, then at that part of the new price. Seeds often overpay: splits and swaps found step by step can cost much less.
inline void reduce_price(search_run& run) {
  auto& state = run.state;
  auto const& numbers = state.policy.price_reduction;
  auto const before = state.out.original.latency;
  for (bool less = true; less && state.budget.used() < numbers.last;) {
    auto const latency = state.best->state.result.latency;
    if (latency <= numbers.cheap * before) return;
    auto const inner = state.sub_search([&] {
      state.is_exploratory = true;
      state.active_limits.latency = before + (latency - before) * numbers.price;
      state.active_limits.limits_latency = true;
      state.budget.begin_sub_budget(numbers.share);
      search_smallest_peak(run);
      state.budget.end_sub_budget();
    });
    less = inner.active_limits.fits(inner.best->state.result);
    if (less) state.consider(inner.best);
    state.queue.push_back(state.best);
    state.restart_from(std::move(state.queue));
  }
}

/// While nothing meets the limit of memory: recomputation by segments, and dives towards the smallest peak from the open
/// list, the nearest to the limit first, until one does; with a little of the budget. The results do not join the open list.
inline void search_first_fit(search_run& run) {
  using node_ptr = search_run::node_ptr;
  auto& state = run.state;
  auto const& numbers = state.policy.first_fit;
  if (!numbers.on || !state.goal.limits_memory || state.is_met()) return;
  stage_scope const recorded(state, "first_fit");
  auto const inner = state.sub_search([&] {
    run.recomputed.add_until_met(run.starts, state.budget.used() + numbers.segments);
    if (run.has_strategy() || state.is_met()) return;
    auto near = state.queue;
    auto const far = state.target + ratio_of(numbers.far_ratio, state.target);
    std::erase_if(near, [&](node_ptr const& n) { return n->expanded || n->state.result.peak_bytes > far; });
    sort_list(near, [](node_ptr const& a, node_ptr const& b) { return a->excess < b->excess; });
    state.budget.begin_sub_budget(numbers.dives);
    state.seek(smallest_peak_within(state.active_limits));
    for (auto const& n : near)
      if (!state.out_of_time()) run.diving.descend(n, state.part);
    state.budget.end_sub_budget();
  });
  state.best = inner.best;
  state.restart_from(std::move(state.queue));
}

}}}  // namespace neap::v0::detail
