// A stage of the search: what recomputation has led to is cut once more at its peaks.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/optimize/stages/fission_chains.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The candidates in the queue that are worth cutting, in the order in which they are cut: of a limit of memory, those above
/// it that are quicker than the best; otherwise the smallest.
inline std::vector<search_state::node_ptr> candidates_to_cut(search_state const& state, seconds_t latency,
                                                             bytes_t first_target) {
  using node_ptr = search_state::node_ptr;
  auto const& numbers = state.policy.further_parts;
  bool const limited = state.goal.limits_memory;
  auto nodes = state.queue;
  std::erase_if(nodes, [&](node_ptr const& n) {
    return n->how || n->state.result.latency >= latency || (limited && n->state.result.peak_bytes <= state.target);
  });
  sort_list(nodes, [](node_ptr const& a, node_ptr const& b) {
    return a->state.result.peak_bytes < b->state.result.peak_bytes;
  });
  auto const is_as_good = [](node_ptr const& a, node_ptr const& b) {
    auto const &x = a->state.result, &y = b->state.result;
    return x.peak_bytes == y.peak_bytes && x.latency == y.latency;
  };
  nodes.erase(std::unique(nodes.begin(), nodes.end(), is_as_good), nodes.end());
  // A larger one that has left more than half of what may be spent can still go far.
  auto const half = (state.out.original.latency + latency) / 2;
  std::erase_if(nodes, [&](node_ptr const& n) {
    auto const& r = n->state.result;
    bool const goes_far = state.goal.spends_latency() && r.latency <= half;
    return ratio_of(goes_far ? numbers.near_with_latency : numbers.near_ratio, r.peak_bytes) > first_target;
  });
  // In turn the smallest, and the quickest of those that no smaller one is about as quick as: they have latency to spend.
  std::vector<node_ptr> front;
  for (auto const& n : nodes)
    if (front.empty() || n->state.result.latency < numbers.quicker * front.back()->state.result.latency)
      front.push_back(n);
  std::vector<node_ptr> in_turn;
  auto const take = [&](node_ptr const& n) {
    if (std::find(in_turn.begin(), in_turn.end(), n) == in_turn.end()) in_turn.push_back(n);
  };
  for (std::size_t k = 0; k < std::min(nodes.size(), numbers.most); ++k) {
    take(nodes[k]);
    if (k < front.size()) take(front[front.size() - 1 - k]);
  }
  return in_turn;
}

/// Cuts candidates of the queue at their peaks, with a part of the budget.
inline void cut_further(search_state& state, fission_sweep_options const& priced, double part) {
  auto const& numbers = state.policy.further_parts;
  bool const limited = state.goal.limits_memory;
  auto const latency = [&] {
    return limited && state.is_met() ? state.best->state.result.latency : state.goal.latency;
  };
  auto const target_at = [&](double ratio) {
    return limited ? state.target : ratio_of(ratio, state.best->state.result.peak_bytes);
  };
  auto const& targets = numbers.targets;
  auto const in_turn = candidates_to_cut(state, latency(), target_at(targets[0]));
  auto again = priced;
  again.again = true;
  // Graphs in parts are large, and those that wait are whole.
  auto const hold_much = [&] {
    std::size_t ops = 0;
    for (auto const& n : state.queue) ops += n->state.graph.op_count();
    return ops > numbers.max_ops;
  };
  // Parts for a target; for the next one where that was reached, and is not yet the limit.
  auto const cut = [&](auto const& from, double ratio) {
    for (bool reached = true; reached && !state.out_of_time(part) && !hold_much();) {
      auto const target = target_at(ratio);
      auto n = chain_of_fissions(state, from, target, latency(), part, again);
      if (n == from) return;
      reached = n->state.result.peak_bytes <= target && !limited;
      state.queue.push_back(std::move(n));
    }
  };
  if (limited) {
    for (auto const& from : in_turn) cut(from, targets[0]);
  } else if (state.goal.spends_latency()) {  // any of them may lead far: each is tried before one is tried again
    for (double const t : targets)
      for (auto const& from : in_turn) cut(from, t);
  } else {
    for (auto const& from : in_turn)
      for (double const t : targets) cut(from, t);
  }
}

}}}  // namespace neap::v0::detail
