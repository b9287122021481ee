// Stages of the search that move out what is needed last (mutate/offload.hpp): swaps that nothing waits for, and swaps for
// a limit.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/core/work_meter.hpp>
#include <neap/mutate/offload.hpp>
#include <neap/optimize/stages/seed_edits.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// What an offload for a target makes of a candidate, evaluated; nothing if it moves nothing, or if there is no time for it.
inline search_state::node_ptr offload_from(search_state& state, search_state::node_ptr const& from, bytes_t target,
                                           double lead) {
  if (!state.budget.has_time_for(2 * from->state.graph.op_count())) return nullptr;
  work_meter::add(state.policy.epochs.offloading_an_op * from->state.order.size());
  offload const m{target, state.allowed.swap, lead};
  auto e = apply_mutation(m, from->state);
  if (!e) return nullptr;
  place_transfers(state, *e, target);
  return state.evaluate_edit(from, m, std::move(*e), true);
}

/// Finds how far the peak of the orders to start from falls by swaps that nothing waits for, by halving between ends that
/// do not depend on a limit: all limits above it have one answer.
inline void add_hidden_swaps(search_state& state, std::vector<search_state::node_ptr> const& orders) {
  auto const& numbers = state.policy.hidden_swaps;
  auto high = state.out.original.peak_bytes, low = std::min(state.out.lower_bound_bytes, high);
  // Swaps are placed for the target: with another one the same order may have time for them.
  auto const lowers = [&](bytes_t target) {
    for (auto const& from : orders)
      for (double const lead : numbers.leads) {
        if (state.is_over()) return false;
        auto const n = offload_from(state, from, target, lead);
        if (n && state.costs_nothing(n->state.result)) high = std::min(high, n->state.result.peak_bytes);
        if (high <= target) return true;
      }
    return false;
  };
  for (int k = 0; k < numbers.halvings && low < high && !state.out_of_time(numbers.share); ++k)
    if (auto const target = low + (high - low) / 2; !lowers(target)) low = target;
}

/// The original order, and candidates between it and the limits that no other one beats, some at even distances.
inline std::vector<search_state::node_ptr> bases_of_offloads(search_state const& state) {
  using node_ptr = search_state::node_ptr;
  auto all = state.queue;
  std::erase_if(all, [&](node_ptr const& n) {
    auto const& r = n->state.result;
    return n->how || r.latency > state.goal.latency || (state.goal.limits_memory && r.peak_bytes <= state.target);
  });
  sort_list(all, is_quicker<node_ptr>);
  std::vector<node_ptr> front;
  auto smallest = state.original->state.result.peak_bytes;
  for (auto const& n : all)
    if (auto const peak = n->state.result.peak_bytes; peak < smallest) smallest = peak, front.push_back(n);
  std::vector<node_ptr> found{state.original};
  auto const most = state.policy.offloads.max_bases;
  for (std::size_t k = 0; k < most && k < front.size(); ++k)
    found.push_back(front[front.size() <= most ? k : k * (front.size() - 1) / std::max<std::size_t>(most - 1, 1)]);
  return found;
}

/// Of each base, the quickest offload that reaches the limit of memory, or the smallest within that of latency.
inline void add_offloads(search_state& state) {
  using node_ptr = search_state::node_ptr;
  auto const& numbers = state.policy.offloads;
  bool const limited = state.goal.limits_memory;
  // Whether something in the queue is no larger and hardly slower.
  auto const is_beaten = [&](node_ptr const& n) {
    auto const& r = n->state.result;
    return std::any_of(state.queue.begin(), state.queue.end(), [&](node_ptr const& q) {
      auto const& x = q->state.result;
      return x.peak_bytes <= r.peak_bytes && x.latency <= numbers.beaten * r.latency;
    });
  };
  for (auto const& from : bases_of_offloads(state)) {
    node_ptr best;
    std::vector<node_ptr> quick;  // within the limit of latency
    auto const aim_at = [&](bytes_t target) {
      for (double const lead : numbers.leads) {
        if (state.out_of_time(numbers.share)) break;
        auto n = offload_from(state, from, target, lead);
        if (!n || n->state.result.latency > state.goal.latency) continue;
        if (state.goal.spends_latency()) quick.push_back(n);
        if (!best || (limited ? state.beats(n->state.result, best->state.result)
                              : n->state.result.peak_bytes < best->state.result.peak_bytes))
          best = std::move(n);
      }
    };
    if (limited) {
      auto const limit = state.target,
                 with_room = limit - ratio_of(numbers.headroom, limit);  // for loads to begin early
      aim_at(limit);
      if (with_room != limit) aim_at(with_room);
    } else {
      auto const peak = from->state.result.peak_bytes;
      auto missed = std::min(state.out.lower_bound_bytes, peak);
      for (auto target = peak - ratio_of(numbers.first_fall, peak); !state.out_of_time(numbers.share);) {
        aim_at(target);
        auto const reached = best ? best->state.result.peak_bytes : peak;
        if (reached > target) missed = std::max(missed, target);
        if (reached - missed <= std::max<bytes_t>(ratio_of(numbers.tolerance, peak), 1)) break;
        target = missed + (reached - missed) / 2;
      }
    }
    if (best && best == state.best) state.queue.push_back(best);  // others would only be in the way
    // But those that are smaller than all that is as quick: what they leave of the limit may do more elsewhere.
    sort_list(quick, is_quicker<node_ptr>);
    for (auto const& n : quick)
      if (n != best && !is_beaten(n)) state.queue.push_back(n);
  }
}

}}}  // namespace neap::v0::detail
