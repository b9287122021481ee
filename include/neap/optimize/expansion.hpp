// Expanding a candidate: the first mutations that its pipeline yields are judged.
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

/// Judges up to options.width mutations of a built candidate, and calls take(child) for each that is new, in their order.
/// Those of them that the search may answer with are built in the end; the others are outlines where their mutations tell
/// what they would do.
template <class State, class Moves, class Take>
void expand_candidate(State& state, Moves const& moves, typename State::node_ptr const& n, Take&& take) {
  using node_ptr = typename State::node_ptr;
  n->expanded = true;
  work_meter::add(state.policy.epochs.expanding_an_op * n->state.order.size());
  auto stream = moves(n->state);
  std::optional<replay_facts> replay;
  state.forget();
  node_ptr champion;  // of those that are not built: what the search may answer with
  std::array<node_ptr, incumbent_alternatives<node_ptr>::levels> roomy;
  auto const look = [&](std::size_t, node_ptr child) {
    if (!child) return;
    if (child->how) {
      auto const& r = child->state.result;
      if (state.beats(r, state.best->state.result) && (!champion || state.beats(r, champion->state.result)))
        champion = child;
      for (std::size_t k = 0; k < roomy.size(); ++k)
        if (state.beside.is_best_with_headroom(r, k, state.limits) &&
            (!roomy[k] || r.latency < roomy[k]->state.result.latency))
          roomy[k] = child;
    }
    take(std::move(child));
  };
  auto& judge = state.judge();
  std::vector<typename State::move> drawn;
  std::vector<std::uint64_t> work;  // of drawing each
  for (std::size_t tries = 0; tries < state.options.width && !state.out_of_time();) {
    auto const most = std::min(state.options.width - tries, state.looked_at_once());
    drawn.clear(), work.clear();
    timed(state.options.profile, judge.profile.drawing, [&] {
      auto const left = state.budget.left(state.out.candidates, most);
      while (drawn.size() < std::max<std::size_t>(left, 1)) {
        auto const before = work_meter::now();
        auto m = stream.next();
        if (!m) break;
        drawn.push_back(std::move(*m));
        work.push_back(work_meter::now() - before);
        work_meter::reset_to(before);  // it counts when the mutation is looked at, however many are drawn at once
      }
      return true;
    });
    if (drawn.empty()) break;
    judge.profile.drawn += drawn.size(), tries += drawn.size();
    state.look(n, drawn, work, replay, look);
  }
  if (champion && !champion->expanded) (void)state.build(champion);
  for (auto const& c : roomy)
    if (c && !c->expanded) (void)state.build(c);
}

}}}  // namespace neap::v0::detail
