// The last stage of a search: loads and stores of the answer move to where their transfers are hidden best
// (schedule/refine.hpp), if that costs no memory.
#pragma once

#include <neap/optimize/objective.hpp>
#include <neap/optimize/stages/placement.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/flow_facts.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <utility>

namespace neap::inline v0::detail {

/// The answer becomes what comes of a candidate, if that is quicker than `latency`, has no higher peak than the candidate,
/// and its arena is within what it is now or what the limit allows.
template <class State>
void polish_from(State& state, placement<State>& placing, typename State::node_ptr const n, seconds_t latency) {
  auto const& now = n->state;
  flow_facts const facts(now.graph, state.judge().cost(), state.options.memory);
  if (!facts.has_transfers()) return;
  candidate<typename State::graph_type> c{now.graph, refine{}(facts, now.order), {}};
  simulator{}(facts, c.order, c.result);
  state.record.note({c.result.peak_bytes, c.result.latency});
  if (c.result.latency >= latency || c.result.peak_bytes > now.result.peak_bytes) return;
  auto placed = placing.addresses(c);
  auto const allowed = state.asked.limits_memory ? state.out.memory_limit_bytes : 0;
  if (placed.arena_bytes > std::max(state.out.placed.arena_bytes, allowed)) return;
  placing.take(state.make_node(step(n->path, "loads and stores where they are hidden"), std::move(c.graph),
                               std::move(c.order), std::move(c.result)),
               std::move(placed));
}

/// The user's scheduler has placed transfers where it orders candidates: then they stay.
template <class State>
void polish_answer(State& state, placement<State>& placing) {
  if (state.judge().reorders() || !state.policy.polish.on) return;
  auto const answer = state.best;
  polish_from(state, placing, answer, answer->state.result.latency);
  // What was slower before may be quicker with its transfers elsewhere.
  auto const& last = placing.answers();
  for (auto n = last.rbegin(); n != last.rend() && placing.has_time(); ++n)
    if (*n != placing.answer())
      polish_from(state, placing, *n, state.best->state.result.latency * (1 - objective::rounding));
}

}  // namespace neap::inline v0::detail
