// Recomputations of a candidate that a limit of memory leaves room to do without.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/memory/sections.hpp>
#include <neap/mutate/undo_moves.hpp>
#include <neap/optimize/search_state.hpp>
#include <neap/simulate/flow_facts.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Whether the results of the first op can live on to the second's place: by bytes alone, as if nothing ended earlier.
/// `most`: of the candidate's bytes at each position. O(log positions) for each result.
inline bool has_room(candidate const& c, flow_facts const& facts, range_maximum const& most, share_results const& what,
                     bytes_t limit) {
  std::size_t from = c.order.size(), to = 0;
  bytes_t more = 0;
  for (std::size_t j = 0; j < c.graph.outputs(what.first).size(); ++j) {
    auto const x = c.graph.outputs(what.first)[j], y = c.graph.outputs(what.again)[j];
    if (c.graph.uses(y).empty()) continue;
    from = std::min<std::size_t>(from, c.result.live[c.graph.storage(x)].last + 1);
    to = std::max<std::size_t>(to, c.result.live[c.graph.storage(y)].first);
    more += facts.bytes(c.graph.storage(x));
  }
  return from >= to || most(from, to) + more <= limit;
}

/// Undoes recomputations one by one, the slowest first, each where the peak stays within a limit and latency falls. `left`:
/// how many ops all graphs that are built may have together. Ops that gained nothing are not tried again; ops that are equal
/// in the program itself stay apart. Simulations are noted. Ends soon where the time of the search is used up.
inline bool undo_recomputations(search_state& state, candidate& c, bytes_t limit, std::size_t& left) {
  std::vector<std::uint64_t> in_vain;  // digests of ops
  auto const has_time = [&] {
    auto const end = -state.policy.polish.overrun * state.options.time.limit.count();
    return state.budget.seconds_left(c.order.size()) > end;
  };
  auto const undone = [&](edited& e) {
    candidate quicker{std::move(e.graph), std::move(e.order), {}};
    flow_facts const facts(quicker.graph, state.evaluator().cost(), state.options.memory);
    simulator{}(facts, quicker.order, quicker.result);
    state.record.note(quicker.result);
    bool const gains = quicker.result.peak_bytes <= limit && quicker.result.latency < c.result.latency;
    if (gains) c = std::move(quicker);
    return gains;
  };
  bool is_changed = false;
  for (bool again = true; std::exchange(again, false) && has_time();) {
    flow_facts const facts(c.graph, state.evaluator().cost(), state.options.memory);
    auto copies = find_shared{}(c);
    for (auto& copy : copies) copy.score = facts.seconds(copy.what.again);
    sort_list(copies, [](auto const& a, auto const& b) { return a.score > b.score; });
    range_maximum const most(c.result.bytes_at);
    for (auto const& [seconds, what] : copies) {
      auto const digest = c.graph.digest(what.again).low;
      if (left < c.order.size() || seconds <= 0 || !has_room(c, facts, most, what, limit)) continue;
      if (c.graph.origin(what.first) != c.graph.origin(what.again) || std::ranges::count(in_vain, digest) > 0) continue;
      if (!has_time()) return is_changed;
      auto e = state.evaluator().apply(c, what);
      if (e) left -= c.order.size();
      if (!e || !undone(*e)) {
        in_vain.push_back(digest);
        continue;
      }
      is_changed = again = true;
      break;
    }
  }
  return is_changed;
}

}}}  // namespace neap::v0::detail
