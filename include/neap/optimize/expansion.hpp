// Expanding a candidate: the first mutations that its pipeline yields are evaluated.
#pragma once

#include <neap/core/work_meter.hpp>
#include <neap/mutate/replay_facts.hpp>
#include <neap/optimize/search_state.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Evaluates up to options.width mutations of a built candidate, and calls take(child) for each that is new, in their order.
/// Those that may become the answer are built in the end; the others are known by their edits alone.
template <class Take>
void expand_candidate(search_state& state, any_mutator const& moves, search_state::node_ptr const& n, Take&& take) {
  using node_ptr = search_state::node_ptr;
  n->expanded = true;
  work_meter::add(state.policy.epochs.expanding_an_op * n->state.order.size());
  auto stream = moves(n->state);
  std::optional<replay_facts> replay;
  state.forget();
  node_ptr best_unbuilt;  // of those that are not built: what the search may answer with
  std::array<node_ptr, incumbent_alternatives<node_ptr>::levels> best_with_headroom;
  auto const take_child = [&](std::size_t, node_ptr child) {
    if (!child) return;
    if (child->how) {
      auto const& r = child->state.result;
      if (state.beats(r, state.best->state.result) && (!best_unbuilt || state.beats(r, best_unbuilt->state.result)))
        best_unbuilt = child;
      for (std::size_t k = 0; k < best_with_headroom.size(); ++k)
        if (state.alternatives.is_best_with_headroom(r, k, state.limits) &&
            (!best_with_headroom[k] || r.latency < best_with_headroom[k]->state.result.latency))
          best_with_headroom[k] = child;
    }
    take(std::move(child));
  };
  auto& evaluator = state.evaluator();
  std::vector<search_state::move> drawn;
  std::vector<std::uint64_t> work;  // of drawing each
  for (std::size_t tries = 0; tries < state.options.width && !state.out_of_time();) {
    auto const most = std::min(state.options.width - tries, state.batch_size());
    drawn.clear(), work.clear();
    timed(state.options.profile, evaluator.profile.drawing, [&] {
      auto const left = state.budget.left(state.out.candidates, most);
      while (drawn.size() < std::max<std::size_t>(left, 1)) {
        auto const before = work_meter::now();
        auto m = stream.next();
        if (!m) break;
        drawn.push_back(std::move(*m));
        work.push_back(work_meter::now() - before);
        work_meter::reset_to(before);  // it counts when the mutation is evaluated, however many are drawn at once
      }
      return true;
    });
    if (drawn.empty()) break;
    evaluator.profile.drawn += drawn.size(), tries += drawn.size();
    state.evaluate(n, drawn, work, replay, take_child);
  }
  if (best_unbuilt && !best_unbuilt->expanded) (void)state.build(best_unbuilt);
  for (auto const& c : best_with_headroom)
    if (c && !c->expanded) (void)state.build(c);
}

}}}  // namespace neap::v0::detail
