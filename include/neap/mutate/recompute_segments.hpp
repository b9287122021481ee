// recompute_segments: recomputation by segments for a whole program in one mutation. It takes a budget where `rematerialize` takes
// a value, and reaches at once what hundreds of single recomputations would; deep models have no other way down.
#pragma once

#include <neap/mutate/compute_again.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/recompute_ground.hpp>

#include <cstdio>
#include <limits>
#include <string>

namespace neap { inline namespace v0 {

/// Drop what costs less to compute again than its bytes are worth, in segments that fit a budget (recompute_ground.hpp).
struct recompute_segments {
  double price = std::numeric_limits<double>::infinity();  // seconds a byte that is kept; infinite: keep what must be
  double tail_price = 0;                                   // of what comes last before the turn
  bytes_t budget = 0;                                      // about the peak that is wanted

  friend bool operator==(recompute_segments const&, recompute_segments const&) = default;

  bool edit(candidate const& c, replay_facts const&, graph_edit& out) const {
    auto const ground = ground_of(c);
    return !ground.empty() && edit_of(c, ground.choose(ground.cut(price), ground.cut(tail_price), budget), out);
  }
  /// What a choice comes to; false if it does not fit its budget.
  static bool edit_of(candidate const& c, detail::recompute_choice const& choice, graph_edit& out) {
    return choice.fits && detail::again_builder(c.graph, c.order, choice.dropped).edit(out);
  }
  /// The same as a graph.
  static std::optional<edited> build(candidate const& c, detail::recompute_choice const& choice) {
    graph_edit what;
    if (!edit_of(c, choice, what)) return std::nullopt;
    return neap::build(c.graph, c.order, what);
  }
  static detail::recompute_ground ground_of(candidate const& c) {
    return {c.graph, c.order, c.result, [&](op_id o) { return flow::is_recomputable(c.graph, o); }};
  }

  std::string describe(candidate const&) const {
    char prices[80];
    std::snprintf(prices, sizeof prices, "%.3g and %.3g s/GB", price * 1e9, tail_price * 1e9);
    return detail::text_of({"recompute by segments for ", budget, " bytes at ", prices});
  }
};

}}  // namespace neap::v0
