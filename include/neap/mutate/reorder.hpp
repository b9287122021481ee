// reorder: one op moves to another place in the order where that leaves fewer bytes at the peak. What makes bytes that
// wait through the peak is computed behind it, just before it is first needed; what could free bytes already, by being
// their last reader, runs before it: a reduction, a gradient that is added, an update whose gradient is complete.
//
//   late     before  o ~~~~~ [ peak ] ~~~~~ reader          after           [ peak ]      o reader
//   early    before  v ~~~~~ [ peak ] ~~~~~ o               after   v ~~~ o [ peak ]
//
// Orders are made as a whole elsewhere (schedule/memory_greedy.hpp; sink and hoist of schedule/slide.hpp, which also run
// updates as early as the graph allows); this is for what a search has changed since. No op passes one that it depends on,
// nor an update a reader of what it overwrites.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/ranked_stream.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace neap { inline namespace v0 {

/// The op at a position moves to just before the op that stands at another one (or to the end).
struct move_op {
  std::uint32_t from = 0, before = 0;

  friend bool operator==(move_op const&, move_op const&) = default;

  /// Nothing if the order would not be valid.
  std::optional<edited> apply(candidate const& c) const {
    auto const n = static_cast<std::uint32_t>(c.order.size());
    if (from >= n || before > n || before == from || before == from + 1) return std::nullopt;
    edited e{c.graph, c.order};
    auto const at = e.order.order.begin();
    if (before > from) std::rotate(at + from, at + from + 1, at + before);
    else std::rotate(at + before, at + from, at + from + 1);
    if (!check_order(c.graph, e.order)) return std::nullopt;
    return e;
  }
  std::string describe(candidate const& c) const {
    auto const o = c.order[from];
    return detail::text_of(
        {"move ", c.graph.facets(o).name, " #", index(c.graph.origin(o)), " from position ", from, " to ", before});
  }
};

namespace detail {

/// The moves that promise to lower the bytes at the peak, worth these bytes.
struct find_moves {
  plain_vector<scored<move_op>> operator()(candidate const& c) const {
    plain_vector<scored<move_op>> found;
    auto const& g = c.graph;
    auto const n = static_cast<std::uint32_t>(c.order.size());
    auto const peak = c.result.peak_position;
    auto const at = positions(c.order);
    flow_facts const facts(g, no_cost{});
    table<op_id, std::uint32_t> next(g.op_count(), n),
        last(g.op_count(), 0);  // the first that waits; after the last waited for
    for (auto o : g.ops())
      for (auto before : facts.after(o)) {
        next[before] = std::min(next[before], at[o]);
        last[o] = std::max(last[o], at[before] + 1);
      }
    auto const alive = [&](storage_id s) {
      return !g.is_resident(s) && c.result.live[s].first <= peak && c.result.live[s].last >= peak;
    };
    plain_vector<storage_id> seen;  // an op may read one storage twice
    auto const once = [&](storage_id s) {
      if (std::find(seen.begin(), seen.end(), s) != seen.end()) return false;
      seen.push_back(s);
      return true;
    };
    for (std::uint32_t i = 0; i < n; ++i) {
      auto const o = c.order[i];
      if (facts.stream(o) != op_stream::compute) continue;
      seen.clear();
      bytes_t gained = 0;
      if (i < peak && next[o] > peak && next[o] < n) {  // its results may wait
        for (auto v : g.outputs(o))
          if (g.record(v).alias == alias_kind::fresh) gained += g.bytes(g.storage(v));
        for (auto v : g.inputs(o))
          if (auto const s = g.storage(v); !g.is_resident(s) && once(s) && c.result.live[s].last < peak)
            gained -= g.bytes(s);
        if (gained > 0) found.push_back({static_cast<double>(gained), {i, next[o]}});
      } else if (i > peak && last[o] <= peak) {  // its arguments may go
        for (auto v : g.inputs(o))
          if (auto const s = g.storage(v); once(s) && alive(s) && c.result.live[s].last == i) gained += g.bytes(s);
        for (auto v : g.outputs(o))
          if (g.record(v).alias == alias_kind::fresh) gained -= g.bytes(g.storage(v));
        if (gained > 0) found.push_back({static_cast<double>(gained), {i, last[o]}});
      }
    }
    return found;
  }
};

}  // namespace detail

/// The mutator: `move_op` for every op whose move promises fewer bytes at the peak.
struct reorder {
  auto operator()(candidate const& c) const { return detail::ranked_stream<move_op, detail::find_moves>(c, {}); }
};

}}  // namespace neap::v0
