// Products of matrices and what follows them become one operator each (op::matmul_epilogue), which the product library of
// a GPU makes in one call. On the host, the values that stay have the same bits.
//
//   auto step = neap::fuse_epilogues(neap::training_step(model, sample, loss, optimizer));
//
//   matmul, add of a bias                      -> bias
//   matmul, add of a bias, relu or tanh gelu   -> bias_relu, bias_gelu; a value in front of the activation that has other
//                                                 readers is a second result
//   matmul, gelu_grad of tanh gelu             -> gelu_grad
//   matmul, gelu_grad of tanh gelu, sum_to     -> gelu_grad_sums: with the gradient of the bias in front of the gelu
//   matmul, sum_to of one of its operands      -> sums_of_a, sums_of_b: the gradients of a weight and a bias
//
// An operator is made where its last op was; what reads its other results waits until there. Gelu by erf stays an operator
// of its own, since libraries have the tanh form alone. What is pinned stays by itself.
//
// Use it before fuse_elementwise(), which would take the additions. Planning comes after. Recomputation runs the whole
// operator again: an activation that would be made again from what it reads takes a product then. Training steps recover
// gelu in its gradient (activation_recovery.hpp), so it is not recomputed there.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/operators/matmul_epilogue.hpp>
#include <neap/train/fused_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// Finds products with epilogues, and writes the graph anew.
class epilogue_fuser : public operator_groups {
 public:
  using operators = type_list<op::matmul_epilogue>;

  epilogue_fuser(op_graph const& g, operator_facets const& facets);

  /// Finds all there are.
  void find(std::span<std::vector<op_id> const> /*like*/);

 private:
  /// The product that an op adds a bias to, as its first operand; nothing if it does something else.
  op_id biased_product(op_id sum) const;
  void match_activation(op_id o);
  void match_bias(op_id o);
  void match_gelu_gradient(op_id o);
  /// The sums may be of the operand, or of a dense value of more axes that is there.
  void match_sums(op_id o);
  /// Whether an op that may join gives the sums of x, dense, over all axes but the last.
  bool sums_columns(op_id sum, value_id x) const;
  /// Whether v has the elements of x, of two axes or more, in its order.
  bool shows_all_of(value_id v, value_id x) const;

  plain_vector<value_id> inputs_of(op_id product, value_id third) const;

  operator_facets const& facets_;
  table<storage_id, plain_vector<op_id>> sums_;  // ops that sum a value of the storage
};

}  // namespace detail

/// The program with its products and what follows them fused. Throws neap::error for a graph with parts or a cycle.
/// At most O(ops + edges) for each operator made.
template <class Ops>
fused_graph<basic_graph<Ops>> fuse_epilogues(basic_graph<Ops> const& g) {
  return detail::fused_by<detail::epilogue_fuser>(g);
}

/// A training step with its products and what follows them fused. So are steps for samples of other sizes, which a trainer
/// makes.
template <class Ops>
training_program<Ops> fuse_epilogues(training_program<Ops> p) {
  return detail::fused_recipe<detail::epilogue_fuser, Ops>::fused(std::move(p));
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/fuse_epilogues.ipp>
#endif
