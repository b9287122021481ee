// A stage of the search: rules that make a program quicker (mutate/rewrite.hpp).
#pragma once

#include <neap/optimize/expansion.hpp>
#include <neap/optimize/search_run.hpp>

#include <utility>

namespace neap { inline namespace v0 { namespace detail {

/// What rules make of a candidate, one after the other, the one that gains most first, with no more memory; the candidate
/// itself where none does. With a part of the budget.
inline search_state::node_ptr apply_rules(search_state& state, any_mutator const& moves, search_state::node_ptr n,
                                          double part) {
  using node_ptr = search_state::node_ptr;
  auto const& numbers = state.policy.rules;
  for (node_ptr next = n; next && !state.out_of_time(part * state.part);) {
    auto const from = std::exchange(next, nullptr);
    expand_candidate(state, moves, from, [&](node_ptr child) {
      auto const &was = from->state.result, &is = child->state.result;
      auto const& best = next ? next->state.result : was;
      if (is.peak_bytes <= was.peak_bytes && is.latency < best.latency * (1 - numbers.gain)) next = std::move(child);
    });
    from->expanded = false;
    if (next && !state.build(next)) next = nullptr;
    if (next) n = next;
  }
  state.seen.clear();  // what was passed over here may be looked at again
  return n;
}

/// What rules make of the first base becomes one, too.
inline void add_rewritten_base(search_run& run) {
  auto const first = run.bases.front();
  auto quicker = apply_rules(run.state, run.moves, first, run.state.policy.rules.share);
  if (quicker != first) run.bases.push_back(std::move(quicker));
}

}}}  // namespace neap::v0::detail
