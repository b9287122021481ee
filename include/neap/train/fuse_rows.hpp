// Functions of rows (norms, softmax, their gradients) or of channels (batch and group norms, their gradients) and the
// elementwise operators beside them become one operator each (op::fused_rows), which reads and writes a row or channel
// once. So do reductions and the elementwise operators that make what they add up (op::fused_reduction). The values that
// stay have the same bits.
//
//   auto step = neap::fuse_rows(neap::training_step(model, sample, loss, optimizer));
//
//   add of a residual, layer_norm            -> one operator; the sum that others read is a second result
//   mul_scalar, where, softmax               -> one operator
//   layer_norm_grad, add of another gradient -> one operator
//   batch_norm, add of a residual, relu      -> one operator
//   mul by a mask, sum                       -> one operator
//   relu_grad, sum_to of a bias              -> one operator; the gradient that others read is a second result
//
// What makes the function's argument joins it, and what reads its result: step by step, as long as a program has room
// for it, and each of them has no other reader. Where the argument or the result has other readers, it is a further
// result; that of a reduction only if the reduction is its first reader. An operator is made where its last op was. What
// its ops read waits until there: so an op does not join if more bytes would wait than its result has, unless nothing
// else is computed in between.
//
// Use it after fuse_epilogues(), to which additions of biases belong, and before fuse_elementwise(); in any other order
// programs are right, too. Planning comes after. What is pinned stays by itself.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/operators/fused_reduction.hpp>
#include <neap/ir/operators/fused_rows.hpp>
#include <neap/train/fused_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// Finds functions of rows with elementwise ops beside them, and reductions with such ops before them.
class rows_fuser : public operator_groups {
 public:
  using operators = type_list<op::fused_rows, op::fused_reduction>;

  rows_fuser(op_graph const& g, operator_facets const& rows, operator_facets const& reduction);

  /// Finds all there are.
  void find(std::span<std::vector<op_id> const> /*like*/);

 private:
  /// Elementwise ops as one program.
  struct chain {
    plain_vector<op_id> ops;  // in order
    plain_vector<value_id> in;
    op::fused program;
  };

  /// An op that is a function of rows, without steps.
  std::optional<op::fused_rows> function_of(op_id o) const;
  /// An op that is a reduction, without steps.
  std::optional<op::fused_reduction> reduction_of(op_id o) const;

  void match(op_id o, op::fused_rows const& plain);
  void match(op_id o, op::fused_reduction made);
  bool make_one(op_id o, op::fused_rows op, chain const& before, chain const& after);

  /// What makes the function's argument, in at most so many steps.
  chain before_of(op_id o, int max_steps);
  /// What reads the function's result: the first op that does, if it may, and what alone reads that one's.
  chain after_of(op_id o, chain const& before);

  op_id first_reader(value_id v) const;
  bool is_read_elsewhere(value_id v, op_id o) const;
  /// Whether an op is elementwise, may be a part of another one, and gives a value of the shape that function o reads.
  bool may_be_beside(op_id p, op_id o) const;
  /// Whether op p may wait until the place of op o, which comes later; ops `with` wait as well.
  bool may_wait(op_id p, op_id o, std::span<op_id const> with) const;

  /// Ops as a program whose first input is `first`, if there is one. None if it is too large.
  std::optional<chain> program_of(plain_vector<op_id> ops, value_id first, int max_steps) const;

  static constexpr int max_steps_of_rows = max_rank;  // before a function of rows, and after it
  operator_facets const &rows_, &reduction_;
  table<storage_id, std::size_t> last_reader_;  // its place; the number of ops: the storage stays
};

}  // namespace detail

/// The program with its functions of rows and reductions, and what is beside them, fused. Throws neap::error for a graph
/// with parts or a cycle. At most O(ops + edges) for each operator made.
template <class Ops>
fused_graph<basic_graph<Ops>> fuse_rows(basic_graph<Ops> const& g) {
  return detail::fused_by<detail::rows_fuser>(g);
}

/// A training step with its functions of rows and reductions, and what is beside them, fused. So are steps for samples of
/// other sizes, which a trainer makes.
template <class Ops>
training_program<Ops> fuse_rows(training_program<Ops> p) {
  return detail::fused_recipe<detail::rows_fuser, Ops>::fused(std::move(p));
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/fuse_rows.ipp>
#endif
