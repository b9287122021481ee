// A valid order for an edited graph from the order before the edit, without scheduling all of it again: the ops that were
// there keep their places, each new one is put where it serves best.
//
//   old order:   a b c d e        new ops: c' (c again, for e), s (store b), l (load s, for d)
//   new order:   a b s c l d c' e
//
// A store stands right after the ops it waits for; everything else right before the first op that waits for it.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/schedule/order.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// The valid order in which ops come as near to their ranks as they can: the ready op of least rank comes next.
/// O((ops + edges) log ops).
schedule order_by_rank(flow_facts const& facts, table<op_id, std::uint64_t> const& rank);

}  // namespace detail

/// An order of all ops of a graph from an order of some of them, ids being the new graph's. Ops in `partial` keep their
/// order unless the new constraints forbid it (then the whole order is repaired, each op as near to its place as it can
/// be). Throws neap::error on a cycle. O(ops + edges), and O((ops + edges) log ops) where it must repair.
schedule complete_order(flow_facts const& facts, schedule const& partial);

/// The same from a graph alone: `complete_order(edited, old)`.
template <dataflow_graph G>
schedule complete_order(G const& g, schedule const& partial) {
  return complete_order(flow_facts(g, no_cost{}), partial);
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/schedule/impl/incremental.ipp>
#endif
