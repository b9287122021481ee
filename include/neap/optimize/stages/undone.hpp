// Recomputations of a candidate that a limit of memory leaves room to do without, as they are or in exchange for others.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/memory/sections.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/undo_moves.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_state.hpp>
#include <neap/simulate/flow_facts.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
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

/// What is left of the work and the time of the steps below: ops of all graphs that are built, and the time of the search,
/// which may be overrun a little.
struct undoing_budget {
  search_state& state;
  std::size_t ops;

  bool allows(candidate const& c) const {
    auto const end = -state.policy.polish.overrun * state.options.time.limit.count();
    return ops >= c.order.size() && state.budget.seconds_left(c.order.size()) > end;
  }
  /// What a mutation makes of a candidate, simulated and noted; nothing where it cannot be made.
  template <class M>
  std::optional<candidate> made(candidate const& c, M const& m) {
    auto e = state.evaluator().apply(c, m);
    if (!e) return std::nullopt;
    ops -= c.order.size();
    candidate out{std::move(e->graph), std::move(e->order), {}};
    flow_facts const facts(out.graph, state.evaluator().cost(), state.options.memory);
    simulator{}(facts, out.order, out.result);
    state.record.note(out.result);
    return out;
  }
};

/// Undoes recomputations one by one, the slowest first, each where the peak stays within a limit and latency falls. Ops that
/// gained nothing, and those of the digests `in_vain`, are not tried again; ops that are equal in the program itself stay
/// apart. Whether any was undone.
inline bool undo_recomputations(candidate& c, bytes_t limit, undoing_budget& left,
                                std::vector<std::uint64_t> in_vain = {}) {
  bool is_changed = false;
  for (bool again = true; std::exchange(again, false) && left.allows(c);) {
    flow_facts const facts(c.graph, left.state.evaluator().cost(), left.state.options.memory);
    auto copies = find_shared{}(c);
    for (auto& copy : copies) copy.score = facts.seconds(copy.what.again);
    sort_list(copies, [](auto const& a, auto const& b) { return a.score > b.score; });
    range_maximum const most(c.result.bytes_at);
    for (auto const& [seconds, what] : copies) {
      auto const digest = c.graph.digest(what.again).low;
      if (seconds <= 0 || !has_room(c, facts, most, what, limit)) continue;
      if (c.graph.origin(what.first) != c.graph.origin(what.again) || std::ranges::count(in_vain, digest) > 0) continue;
      if (!left.allows(c)) return is_changed;
      auto quicker = left.made(c, what);
      if (!quicker || quicker->result.peak_bytes > limit || quicker->result.latency >= c.result.latency) {
        in_vain.push_back(digest);
        continue;
      }
      c = *std::move(quicker);
      is_changed = again = true;
      break;
    }
  }
  return is_changed;
}

/// Of all copies of ops, the digests; sorted.
inline std::vector<std::uint64_t> digests_of_copies(candidate const& c) {
  std::vector<std::uint64_t> digests;
  for (auto const& copy : find_shared{}(c)) digests.push_back(c.graph.digest(copy.what.again).low);
  std::ranges::sort(digests);
  return digests;
}

/// Recomputes something in place of what a candidate recomputes, where that is quicker: each of so many recomputations, with
/// what can be undone then. Whether any was.
inline bool exchange_recomputations(candidate& c, bytes_t limit, undoing_budget& left, std::size_t tries) {
  bool is_changed = false;
  for (bool again = true; std::exchange(again, false);) {
    auto const before = digests_of_copies(c);
    if (before.empty()) return is_changed;
    auto stream = rematerialize{}(c);
    for (std::size_t k = 0; k < tries && left.allows(c); ++k) {
      auto const m = stream.next();
      if (!m) break;
      auto other = left.made(c, *m);
      if (!other || other->result.peak_bytes > limit) continue;
      std::vector<std::uint64_t> added;
      std::ranges::set_difference(digests_of_copies(*other), before, std::back_inserter(added));
      undo_recomputations(*other, limit, left, std::move(added));
      if (other->result.latency >= c.result.latency * (1 - objective::rounding)) continue;
      c = *std::move(other);
      is_changed = again = true;
      break;
    }
  }
  return is_changed;
}

}}}  // namespace neap::v0::detail
