// Sliding: two linear passes over an order that move single ops where that frees bytes, and leave the rest as it was.
//
//   sink    an op that makes at least as many bytes as it frees moves to just before the first op that waits for it:
//           copies, views, casts of weights, activations that are wanted late
//   hoist   an op that frees more bytes than it makes moves to right after the last op that it must follow: updates of
//           weights, sums of gradients
//
// Neither is sure to lower the peak, because one op's move changes what another one's is worth; callers compare.
#pragma once

#include <neap/schedule/order.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// The order with compute ops moved late where that costs no bytes. The order must be valid. O(ops + edges).
schedule sink(flow_facts const& facts, schedule const& s);

/// The order with compute ops moved early where that frees bytes. The order must be valid. O(ops + edges).
schedule hoist(flow_facts const& facts, schedule const& s);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/schedule/impl/slide.ipp>
#endif
