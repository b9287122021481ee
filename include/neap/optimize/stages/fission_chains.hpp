// Several stretches of a program in parts, one after the other: where one fission has brought down the peak, the next peak
// is elsewhere.
#pragma once

#include <neap/mutate/fission_sweep.hpp>
#include <neap/optimize/stages/seed_edits.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

/// Whether there is time for the graph that a fission makes: many parts make a large one.
inline bool has_time_for(search_state const& state, fission_of const& f, search_state::node_ptr const& from) {
  auto const copies = static_cast<std::size_t>(f.last - f.first) * static_cast<std::size_t>(f.parts - 1);
  return state.budget.has_time_for(2 * (from->state.graph.op_count() + copies));
}

/// What fissions make of a candidate, one at the peak after the other, until the peak is no higher than the target, or none
/// helps within the latency, or a share of the epoch is used up. `known`: the candidate's own sweep, if there is one.
inline search_state::node_ptr chain_of_fissions(search_state& state, search_state::node_ptr const& from, bytes_t target,
                                                seconds_t latency, double share, fission_sweep_options const& how,
                                                fission_sweep* known = nullptr) {
  auto const& numbers = state.policy.parts;
  auto n = from;
  for (int k = 0; k < numbers.chain_length && n->state.result.peak_bytes > target && !state.out_of_time(share); ++k) {
    auto const& c = n->state;
    auto const peak = c.result.peak_bytes;
    std::optional<fission_sweep> own;
    auto& sweep = n == from && known ? *known : own.emplace(c.graph, c.order, c.result, how);
    search_state::node_ptr next;
    for (auto const& f : sweep.at_the_peak(target, latency, numbers.chain_width)) {
      if (f.inside > std::max(target, peak - ratio_of(numbers.chain_gain, peak - c.graph.resident_bytes())) ||
          !has_time_for(state, f.what, n))
        continue;
      auto e = sweep.apply(f.what, c);
      next = e ? state.evaluate_edit(n, f.what, std::move(*e), true) : nullptr;
      if (next && next->state.result.latency <= latency && next->state.result.peak_bytes <= peak) break;
      next = nullptr;
    }
    if (!next) break;
    n = next;
  }
  return n;
}

}}}  // namespace neap::v0::detail
