// A stage of the search: small programs, exactly (live_sets.hpp).
#pragma once

#include <neap/optimize/live_sets.hpp>
#include <neap/optimize/stages/seed_edits.hpp>

#include <utility>

namespace neap { inline namespace v0 { namespace detail {

/// Offers the best candidate of the program by order and recomputation alone, where the program is small enough.
template <class State>
void plant_small_program(State& state) {
  auto const& numbers = state.policy.exact;
  auto const& c = state.original->state;
  if (!numbers.on || state.judge().reorders() || !state.allowed.recompute || c.graph.op_count() > live_sets::max_ops)
    return;
  flow_facts const facts(c.graph, state.judge().cost(), state.options.memory);
  live_sets all(c.graph, facts, state.may_run_again, numbers.max_states);
  if (!all.is_small() || state.out_of_time()) return;
  auto const found = state.goal.limits_memory ? all.quickest(state.target) : all.smallest(state.goal.latency);
  replay_builder replay(c.graph, c.order, state.may_run_again);
  if (!found || !all.tell(*found, replay)) return;
  if (auto e = std::move(replay).template finish<typename State::graph_type>())
    state.judge_edit(state.original, named_edit{"the best of all orders and recomputations"}, std::move(*e), true);
}

}}}  // namespace neap::v0::detail
