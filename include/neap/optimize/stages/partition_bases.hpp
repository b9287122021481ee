// What fissions start from, beside the orders: candidates that are recomputed by segments, so that each part recomputes
// within itself.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/mutate/recompute_segments.hpp>
#include <neap/optimize/stages/seed_edits.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Candidates that keep less for the backward part than `n`, each slower than the one before, and smaller or with less kept
/// on average: parts may bring the peak down.
inline std::vector<search_state::node_ptr> recomputed_bases(search_state& state, search_state::node_ptr const& n,
                                                            recompute_ground const& ground) {
  using node_ptr = search_state::node_ptr;
  if (ground.empty()) return {};
  auto const& numbers = state.policy.parts;
  auto const late = [&] { return state.out_of_time(numbers.recomputing + state.external_overrun()); };
  auto const cuts = ground.hull(numbers.prices, late);
  std::vector<node_ptr> found;
  for (std::size_t k = 1; k < cuts.size(); ++k)
    for (double of_peak : numbers.budgets) {
      if (late()) break;
      auto const budget = static_cast<bytes_t>(of_peak * static_cast<double>(n->state.result.peak_bytes));
      auto const choice = ground.choose(cuts[k], cuts[0], budget);
      if (n->state.result.latency + state.policy.segments.needed * choice.seconds > state.goal.latency) continue;
      auto e = recompute_segments::build(n->state, choice);
      if (!e) continue;
      if (auto made = state.evaluate_edit(n, recompute_segments{cuts[k].price, cuts[0].price, budget}, std::move(*e)))
        found.push_back(std::move(made));
    }
  sort_list(found, is_quicker<node_ptr>);
  auto const kept = [](node_ptr const& x) {
    double sum = 0;
    for (auto const bytes : x->state.result.bytes_at) sum += static_cast<double>(bytes);
    return sum / static_cast<double>(x->state.order.size());
  };
  auto smallest = static_cast<double>(n->state.result.peak_bytes), least = kept(n);
  std::erase_if(found, [&](node_ptr const& f) {
    auto const peak = static_cast<double>(f->state.result.peak_bytes), mine = kept(f);
    if (f->state.result.latency > state.goal.latency ||
        (peak >= numbers.keeps_less * smallest && mine >= numbers.keeps_less * least))
      return true;
    smallest = std::min(smallest, peak), least = std::min(least, mine);
    return false;
  });
  return found;
}

}}}  // namespace neap::v0::detail
