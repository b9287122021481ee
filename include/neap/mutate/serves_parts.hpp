// Ops that are there for parts alone: they cut, copy or join what parts of a fission read or make.
#pragma once

#include <neap/ir/graph.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/unary.hpp>

namespace neap { inline namespace v0 {

/// Whether an op is no op of the program's: neither cut nor rewritten. (Those that write the whole in place are known by
/// their operator.)
inline bool serves_parts(op_graph const& g, op_id o) {
  if (g.as<op::mul_scalar>(o)) {
    auto const from = g.producer(g.inputs(o)[0]);
    return from != nothing<op_id> && g.as<op::combine_into>(from);
  }
  if (!g.as<op::slice>(o) && !g.as<op::copy>(o)) return false;
  auto const out = g.output(o);
  if (g.uses(out).empty()) return !g.is_kept(out);
  for (auto const& u : g.uses(out))
    if (g.record(u.op).part != nothing<part_id> || serves_parts(g, u.op)) return true;
  return false;
}

}}  // namespace neap::v0
