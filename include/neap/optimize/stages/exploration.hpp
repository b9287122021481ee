// Stages of the search that go on from its seeds and from the orders to start from, until the epoch is used up or all was
// tried: the turns of dives, partitions and rounds.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/optimize/search_run.hpp>
#include <neap/optimize/stages/further_partitions.hpp>

#include <algorithm>
#include <cstddef>

namespace neap { inline namespace v0 { namespace detail {

/// Candidates of the open list are cut further. Where latency alone is limited, what is left of it is spent here first, by
/// mutations and parts in turn.
inline void cut_open_list(search_run& run) {
  auto& state = run.state;
  auto const& numbers = state.policy.further_parts;
  auto const used = [&] { return state.budget.used(); };
  auto const cut = [&](double part) {
    if (auto const* prices = run.parts.prices()) cut_further(state, *prices, part);
  };
  if (!state.goal.spends_latency()) return cut(numbers.share);
  cut(std::max(numbers.share, used() + numbers.spending));
  if (!state.allowed.cut) return;
  if (!state.best->expanded) run.diving.dive(state.best, used() + numbers.dive);
  cut(used() + numbers.spending);
}

inline void dive_from_seeds(search_run& run) {
  auto const& numbers = run.state.policy.dives;
  run.diving.search_from_seeds(run.state.goal.spends_latency()
                                   ? std::max(numbers.seeds, run.state.budget.used() + numbers.seeds_spending)
                                   : numbers.seeds);
}

/// Addresses may need more than the peak: segments for the limit that is lowered then.
inline void reseed_until_placed(search_run& run) {
  auto& state = run.state;
  auto const& numbers = state.policy.placement;
  for (int tries = 0; tries < numbers.max_reseeded && !state.budget.has_sub_budget() && !state.best->is_external_seed &&
                      !run.placing.place() && !state.out_of_time(numbers.reseed_share);
       ++tries)
    run.recomputed.add_seeds(run.starts);
}

/// The share of all dives. Epochs alternate between two: what a search misses with one it may find with the other.
inline double share_of_dives(search_run const& run) {
  auto const& share = run.state.policy.dives.share;
  return share[run.state.goal.spends_latency() || run.state.epoch % 2 == 1 ? 0 : 1];
}

inline void dive_from_orders(search_run& run) {
  using node_ptr = search_run::node_ptr;
  auto& state = run.state;
  auto starts = run.starts;
  sort_list(starts, [](node_ptr const& a, node_ptr const& b) { return a->excess < b->excess; });
  // Where no limit of memory ends a dive, each of these has its share of the time.
  for (std::size_t k = 0; k < starts.size(); ++k) {
    if (starts[k]->expanded || state.is_free()) continue;
    auto const used = state.budget.used(), left = static_cast<double>(starts.size() - k + 1);
    run.diving.descend(starts[k],
                       state.goal.spends_latency() ? used + (share_of_dives(run) - used) / left : state.part);
  }
}

/// From the open list, and from fissions nearer to the best ones.
inline void search_open_list(search_run& run) {
  do run.search(run.has_strategy() ? 1 : share_of_dives(run));
  while (run.parts.refine());
}

/// Addresses of the answer. Where they exceed the limit, segments and dives again, for a limit that is lower by as much.
inline void place_answer(search_run& run) {
  auto& state = run.state;
  state.part = 1;
  for (search_run::node_ptr last; !run.placing.place_and_end() && state.best != last && !state.out_of_time();) {
    last = state.best;
    run.external.add_seeds(true, [] {});
    run.recomputed.add_seeds(run.starts, true);
    run.search();
  }
  run.placing.place_alternatives();
}

}}}  // namespace neap::v0::detail
