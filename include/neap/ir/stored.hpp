// Which store a handle comes from: a wait hands it on.
#pragma once

#include <neap/ir/graph.hpp>
#include <neap/ir/operators/transfer.hpp>

namespace neap { inline namespace v0 {

/// The op that stored what this handle stands for; nothing if none did. O(waits between).
inline op_id store_of(op_graph const& g, value_id handle) {
  auto o = g.producer(handle);
  while (o != nothing<op_id> && g.as<op::wait>(o)) o = g.producer(g.inputs(o)[0]);
  return o != nothing<op_id> && g.as<op::store>(o) ? o : nothing<op_id>;
}

/// Store, load or wait: an op that moves values and computes none.
inline bool is_swap_op(op_graph const& g, op_id o) {
  return g.as<op::store>(o) || g.as<op::load>(o) || g.as<op::wait>(o);
}

}}  // namespace neap::v0
