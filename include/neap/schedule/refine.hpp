// Placement of what a schedule need not compute early: recomputed copies, views, loads and stores. Three passes over an
// order, none of which changes the order of the ops that a loss or a gradient waits for in turn:
//   1. sink (slide.hpp): copies, views, casts of weights and the like reach their first reader.
//   2. store: a store moves to right after the ops it waits for, so that its transfer begins as soon as it can.
//   3. load: a load moves back from its first reader just far enough that its transfer is hidden by what is computed
//      meanwhile, as long as no position exceeds the limit. (MAGIS places them by a fixed distance.)
#pragma once

#include <neap/schedule/incremental.hpp>
#include <neap/schedule/slide.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// Refines an order; the peak does not rise above the larger of the order's own and `limit`. Not valid input orders are
/// refused with neap::error. O(ops + edges) but for loads, each O(the distance it moves).
struct refine {
  bytes_t limit = 0;  // loads may be advanced up to here; 0: up to the peak without advancing any
  bool sink = true, stores = true, loads = true;

  schedule operator()(flow_facts const& facts, const schedule& s) const;

 private:
  static schedule without(flow_facts const& facts, schedule const& s, op_stream stream) {
    schedule rest;
    rest.order.reserve(s.size());
    for (auto o : s)
      if (facts.stream(o) != stream) rest.order.push_back(o);
    return rest;
  }
  static schedule stored(flow_facts const& facts, schedule const& s) {
    return complete_order(facts, without(facts, s, op_stream::to_host));
  }
  static schedule late_loads(flow_facts const& facts, schedule const& s) {
    return complete_order(facts, without(facts, s, op_stream::to_device));
  }

  /// Loads from the last to the first, each back until its transfer is hidden or the bytes do not allow it.
  static schedule advanced(flow_facts const& facts, schedule const& s, bytes_t most, simulator& sim);
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/schedule/impl/refine.ipp>
#endif
