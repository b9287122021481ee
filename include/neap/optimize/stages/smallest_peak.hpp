// Sub-searches for the smallest peak, each with a scope of its own (search_state.hpp): where nothing meets a limit of memory,
// where what meets it is dear, and for a moment while seeds take time.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/stages/exploration.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// A goal without its limit of memory.
inline objective smallest_peak_within(objective const& limits) {
  return {.latency = limits.latency, .limits_latency = limits.limits_latency};
}

/// From seeds on towards the smallest peak within the limit of latency, until that meets the limit of memory.
template <class Run>
void search_smallest(Run& run, std::vector<typename Run::node_ptr> const& orders) {
  auto& state = run.state;
  state.best = nullptr;
  state.queue = orders;
  for (auto const& n : run.parts.bases().empty() ? orders : run.parts.bases())
    if (!state.best || state.beats(n->state.result, state.best->state.result)) state.best = n;
  state.seen.clear();
  state.seek(smallest_peak_within(state.asked));
  auto starts = orders;
  run.external.plant(false, [] {});
  run.plant_all(starts);
  explore(run, starts);
}

/// Where seeds do not meet the limit of memory, the smallest peak is searched for, whatever the limit is, until one
/// meets it: so limits that cannot be met have one answer. Nothing that was found for the limit's sake has a part in it,
/// and its budget does not depend on how soon it begins.
template <class Run>
void search_until_met(Run& run, std::vector<typename Run::node_ptr> const& orders) {
  auto& state = run.state;
  auto const best = state.best;
  auto inner = state.sub_search([&] {
    state.for_smallest = true;
    for (auto const& n : orders) state.note_near(n);
    state.budget.begin_hunt();
    search_smallest(run, orders);
    while (state.is_met() && !run.placing.place()) {  // addresses need more: on to a smaller one
      state.seek(smallest_peak_within(state.asked));
      state.lower_target(state.best->state.result.peak_bytes);
      run.search();
      run.search_neighbourhoods();
    }
    state.budget.end_hunt();
    state.for_smallest = false;
    if (state.beats(best->state.result, state.best->state.result)) state.best = best;
  });
  bool const met = inner.asked.fits(inner.best->state.result);
  if (!met) return state.enter(std::move(inner));  // the smallest peak stays the goal
  state.asked = inner.asked, state.best = inner.best;
  state.queue.push_back(state.best);
  state.resume(std::move(state.queue));
}

/// Where what meets the limit of memory is dear, the smallest peak at a part of its price is searched for, until one meets
/// the limit, then at that part of that one's: what seeds pay for the limit's sake may be far more than parts and swaps need
/// that are looked for one after the other.
template <class Run>
void search_cheaper(Run& run, std::vector<typename Run::node_ptr> const& orders) {
  auto& state = run.state;
  auto const& numbers = state.policy.cheaper;
  if (!numbers.on || !state.allowed.cut) return;
  auto const before = state.out.original.latency;
  for (bool less = true; less && state.budget.used() < numbers.last;) {
    auto const latency = state.best->state.result.latency;
    if (latency <= numbers.cheap * before) return;
    auto const inner = state.sub_search([&] {
      state.aside = true;
      state.asked.latency = before + (latency - before) * numbers.price, state.asked.limits_latency = true;
      state.budget.begin_short_hunt(numbers.share);
      search_smallest(run, orders);
      state.budget.end_hunt();
    });
    less = inner.asked.fits(inner.best->state.result);
    if (less) state.consider(inner.best);
    state.queue.push_back(state.best);
    state.resume(std::move(state.queue));
  }
}

/// While nothing meets the limit of memory: recomputation by segments, and dives towards the smallest peak from what is
/// near the limit, the nearest first, until one does; with a little of the budget. What they come by does not wait.
template <class Run>
void search_first_fit(Run& run, std::vector<typename Run::node_ptr> const& starts) {
  using node_ptr = typename Run::node_ptr;
  auto& state = run.state;
  auto const& numbers = state.policy.first_fit;
  if (!numbers.on || !state.goal.limits_memory || state.is_met()) return;
  auto const inner = state.sub_search([&] {
    run.recomputed.plant_one(starts, state.budget.used() + numbers.segments);
    if (run.has_strategy() || state.is_met()) return;
    auto near = state.queue;
    auto const far = state.target + state.target / numbers.far;
    std::erase_if(near, [&](node_ptr const& n) { return n->expanded || n->state.result.peak_bytes > far; });
    sort_list(near, [](node_ptr const& a, node_ptr const& b) { return a->excess < b->excess; });
    state.budget.begin_short_hunt(numbers.dives);
    state.seek(smallest_peak_within(state.asked));
    for (auto const& n : near)
      if (!state.out_of_time()) run.diving.descend(n, state.part);
    state.budget.end_hunt();
  });
  state.best = inner.best;
  state.resume(std::move(state.queue));
}

}}}  // namespace neap::v0::detail
