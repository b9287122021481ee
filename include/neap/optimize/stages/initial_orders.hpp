// The first stage of a search: the program in its own order and in others, and what follows from that for all others:
// limits in bytes and seconds, and the lower bound of the peak.
#pragma once

#include <neap/optimize/objective.hpp>
#include <neap/optimize/op_names.hpp>
#include <neap/optimize/search_state.hpp>
#include <neap/simulate/lower_bound.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Offers the orders of the program to the search, each once, and gives them as candidates, the original one first.
/// Throws neap::error where one is no order.
inline std::vector<search_state::node_ptr> add_initial_orders(search_state& state, schedule const& original,
                                                              std::span<schedule const> others) {
  auto& out = state.out;
  auto const before = state.budget.elapsed();
  out.original = state.evaluate_whole(state.graph, original);
  state.budget.keep_back(state.policy.placement.kept_back * (state.budget.elapsed() - before) /
                             static_cast<double>(state.graph.op_count() + 1) +
                         std::max(state.options.seconds_an_op_afterwards, 0.0));
  state.limits = state.active_limits =
      objective::resolve(state.options.memory_at_most, state.options.latency_at_most, out.original);
  out.memory_limit_bytes = state.limits.memory;
  out.latency_limit_seconds = state.options.latency_at_most.resolve(out.original.latency);
  auto const& warm = state.options.warm;
  auto bound = peak_lower_bound(state.graph, state.evaluator().facts(), state.allowed.cut || warm.runs_in_parts());
  if (state.allowed.rewrite || warm.is_rewritten()) bound.bytes = bound.end_bytes, bound.forcing.clear();
  out.lower_bound_bytes = bound.bytes;
  for (auto const& f : bound.forcing) out.forcing.push_back({f.op, name_of_op(state.graph, f.op), f.bytes});

  state.seek(state.active_limits);
  auto const offer = [&](char const* how, schedule const& order, std::optional<simulation> result) {
    if (!state.seen.add(*state.evaluator().digest_of(state.graph, order))) return;
    if (!result) result = state.evaluate_whole(state.graph, order);
    state.offer(state.make_node(nullptr, how, state.graph, order, std::move(*result)));
  };
  offer("", original, out.original);
  for (auto const& s : others) offer("another order", s, std::nullopt);
  state.original = state.queue.front();
  return state.queue;
}

}}}  // namespace neap::v0::detail
