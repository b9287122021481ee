// The search from its seeds and from the orders to start from: the turns of dives, partitions and neighbourhoods, or rounds
// where a strategy is an option.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/optimize/search_run.hpp>
#include <neap/optimize/stages/further_partitions.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Addresses may need more than the peak: segments for the limit that has moved then.
template <class Run>
void plant_until_placed(Run& run, std::vector<typename Run::node_ptr> const& starts) {
  auto& state = run.state;
  auto const& numbers = state.policy.placement;
  if (!state.allowed.recompute) return;
  for (int tries = 0; tries < numbers.replanted && !state.budget.is_hunting() && !state.best->given &&
                      !run.placing.place() && !state.out_of_time(numbers.replant_share);
       ++tries)
    run.recomputed.plant(starts);
}

template <class Run>
void explore_by_dives(Run& run, std::vector<typename Run::node_ptr> starts) {
  using node_ptr = typename Run::node_ptr;
  auto& state = run.state;
  auto& diving = run.diving;
  auto const& further = state.policy.further_parts;
  auto const& numbers = state.policy.dives;
  // Where latency alone is limited, what is left of it is spent here first; memory is brought down by dives.
  bool const to_spend = state.goal.spends_latency();
  // Epochs take turns with two shares: what a search misses with one it may find with the other.
  double const dives_share = numbers.share[to_spend || run.epochs % 2 == 1 ? 0 : 1];
  auto const used = [&] { return state.budget.used(); };
  auto const cut = [&](double part) {
    if (auto const* prices = run.parts.prices()) cut_further(state, *prices, part);
  };
  cut(to_spend ? std::max(further.share, used() + further.spending) : further.share);
  if (to_spend && state.allowed.cut && further.on) {  // mutations and parts in turn: each goes on from the other
    if (!state.best->expanded) diving.dive(state.best, used() + further.dive);
    cut(used() + further.spending);
  }
  if (state.allowed.recompute)
    diving.search_from_seeds(to_spend ? std::max(numbers.seeds, used() + numbers.seeds_spending) : numbers.seeds);
  plant_until_placed(run, starts);
  sort_list(starts, [](node_ptr const& a, node_ptr const& b) { return a->excess < b->excess; });
  // Where no limit of memory ends a dive, each of these has its share of the time.
  for (std::size_t k = 0; k < starts.size(); ++k) {
    if (starts[k]->expanded || state.is_free()) continue;
    auto const left = static_cast<double>(starts.size() - k + 1);
    diving.descend(starts[k], to_spend ? used() + (dives_share - used()) / left : state.part);
  }
  if (run.external.is_on()) diving.search_from_external();
  do diving.search(dives_share);
  while (run.parts.sharpen());
  run.search_neighbourhoods();
}

/// Goes on from seeds and from the orders to start from, until the epoch is used up or all was tried.
template <class Run>
void explore(Run& run, std::vector<typename Run::node_ptr> starts) {
  if (!run.has_strategy()) return explore_by_dives(run, std::move(starts));
  plant_until_placed(run, starts);
  do run.search();
  while (run.parts.sharpen());
}

}}}  // namespace neap::v0::detail
