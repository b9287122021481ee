// Gradients that read what a buffer was before it was written, where the gradient itself depends on what was written:
// no order can run that. What the buffer was is copied before it is written, and those gradients read the copy.
//
//     y = h w              h' = assign(h, x)          z = y * h'               dw = h^T dz, where dz = dl/dz * h'
//
//     c = copy(h)          h' = assign(h, x)          z = y * h'               dw = c^T dz
//
// Other gradients read the buffer before it is written, and nothing is copied for them.
#pragma once

#include <neap/ir/operators/movement.hpp>
#include <neap/ir/traversal.hpp>
#include <neap/train/program_copy.hpp>

#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

struct with_old_values {
  op_graph program;
  table<value_id, value_id> value;  // of the given graph -> of the program
  std::size_t copies = 0;           // 0: the program is empty, the given graph can run as it is
};

/// The same program in an order that can run, if copies of what buffers were make one possible. O(ops + edges) where
/// the program can run as it is. Weights are not copied: a gradient through an old weight is refused elsewhere.
with_old_values keep_old_values(op_graph const& g);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/old_values.ipp>
#endif
