// A stage of the search: small programs, exactly (live_sets.hpp).
#pragma once

#include <neap/optimize/live_sets.hpp>
#include <neap/optimize/stages/seed_edits.hpp>

#include <utility>

namespace neap { inline namespace v0 { namespace detail {

/// Offers the best candidate of the program by order and recomputation alone, where the program is small enough.
inline void add_small_program(search_state& state) {
  auto const& c = state.original->state;
  flow_facts const facts(c.graph, state.evaluator().cost(), state.options.memory);
  live_sets all(c.graph, facts, state.may_run_again, state.policy.exact.max_states);
  if (!all.is_small() || state.out_of_time()) return;
  auto const found = state.goal.limits_memory ? all.quickest(state.target) : all.smallest(state.goal.latency);
  replay_builder replay(c.graph, c.order, state.may_run_again);
  if (!found || !all.tell(*found, replay)) return;
  if (auto e = std::move(replay).finish())
    state.evaluate_edit(state.original, named_edit{"the best of all orders and recomputations"}, std::move(*e), true);
}

}}}  // namespace neap::v0::detail
