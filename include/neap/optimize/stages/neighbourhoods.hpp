// A stage of the search: large-neighbourhood search (Shaw 1998). Dives whose prices are disturbed start from the best with a
// stretch of it undone, if the pipeline recomputes, and from where dives began before.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/mutate/undo.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/stages/dives.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// A candidate without what a stretch of its order does again; nothing if that is nothing, or not too large.
inline search_state::node_ptr undo_some(search_state& state, search_state::node_ptr const& from, random_stream& draw) {
  auto const n = static_cast<std::uint32_t>(from->state.order.size());
  auto const length = std::max(n >> (1 + draw.below(state.policy.neighbourhoods.halvings)), 1u);
  auto const middle = draw.below(n + 1);
  undo_stretch const stretch{middle - std::min(middle, length / 2), middle + (length + 1) / 2};
  auto e = state.evaluator().apply(from->state, stretch);
  auto start = e ? state.evaluate_edit(from, stretch, std::move(*e), true) : nullptr;
  return start && start->excess > 0 ? start : nullptr;
}

/// With what is left of the budget, until many dives in a row were in vain. The queue is empty afterwards. `stream` of the
/// random numbers.
inline void search_neighbourhoods(search_state& state, dives& diving, std::uint64_t stream) {
  auto const& numbers = state.policy.neighbourhoods;
  random_stream draw(state.options.seed, stream);
  diving.perturb_by(&draw);
  auto& roots = diving.roots();
  for (int failures = 0; failures < numbers.max_failures && !state.out_of_time() && !state.is_free(); ++failures) {
    auto const best = state.best;
    state.queue.clear();
    state.seen.clear();
    std::erase_if(roots, [&](auto const& n) { return n->excess <= 0 || state.hopeless(*n); });
    bool const undoes = state.allowed.recompute && (draw.below(2) == 0 || roots.empty());
    auto start = undoes ? undo_some(state, best, draw) : nullptr;
    if (!start && !roots.empty()) start = roots[draw.below(static_cast<std::uint32_t>(roots.size()))];
    if (!start) continue;
    start->excess = excess_bytes(start->state.result.bytes_at, state.target);
    ++start->state.visits;
    diving.dive(start);
    if (state.best != best) failures = -1;
  }
  diving.perturb_by(nullptr);
  state.queue.clear();
}

}}}  // namespace neap::v0::detail
