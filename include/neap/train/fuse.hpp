// Several operators become one each (op::fused), so that what lies between them takes no memory and no pass over it. On
// the host, the values that stay have the same bits.
//
//   auto step = neap::fuse(neap::training_step(model, sample, loss, optimizer));
//
//   matmul, add of a bias, then perhaps relu or tanh gelu   a value in front of the activation that has other readers is a
//                                                           second result
//   matmul, gelu_grad of tanh gelu, then perhaps sum_to     with the gradient of the bias in front of the gelu
//   matmul, sum_to of one of its operands                   the gradients of a weight and a bias
//   add of a residual, layer_norm                           the sum that others read is a second result
//   mul_scalar, where, softmax
//   layer_norm_grad, add of another gradient
//   batch_norm, add of a residual, relu
//   mul by a mask, sum; relu_grad, sum_to of a bias         the gradient that others read is a second result
//   add, relu, mul                                          any chain of elementwise operators
//
// First products take what product libraries of GPUs make in one call. (Gelu by erf is in none.) Then functions of rows and
// channels take the elementwise operators beside them, and reductions those that make what they add up. What is left makes
// chains. An operator joins where all other readers of its result are in the same one, or its result becomes a further
// result. A fused operator is made where its last op was, and what its ops read waits until there: so an op does not join
// if more bytes would wait than its result has, unless nothing else is computed in between.
//
// Planning comes after: fission cuts fused operators, recomputation runs them again, and verify() compares them step by
// step. An activation that would be recomputed from what it reads takes its product then; but training steps recover gelu
// in its gradient (activation_recovery.hpp). What is pinned stays by itself.
#pragma once

#include <neap/train/operator_groups.hpp>
#include <neap/train/training_step.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// What fuse() makes: products with what follows them; functions of rows or channels and reductions with what is beside
/// them; chains of elementwise operators.
struct fuse_options {
  bool products = true, rows = true, chains = true;
};

namespace detail {

/// Finds what becomes one operator.
class fuser : public operator_groups {
 public:
  fuser(op_graph const& g, operator_facets const& fused);

  /// Finds all there is; chains are those of a program of the same ops with other extents (its groups are `like`), if these
  /// fit here.
  void find(fuse_options options, std::span<std::vector<op_id> const> like);

 private:
  /// Elementwise ops as one program.
  struct chain {
    plain_vector<op_id> ops;  // in order
    plain_vector<value_id> in;
    element_program program;
  };
  /// Ops as a program whose first input is `first`, if there is one. None if it is too large for one, or computes in f64
  /// and in f32.
  std::optional<chain> program_of(plain_vector<op_id> ops, value_id first = nothing<value_id>) const;

  // Products.
  /// The product that an op adds a bias to, as its first operand; nothing if it does something else.
  op_id biased_product(op_id sum) const;
  void match_activation(op_id o);
  void match_bias(op_id o);
  void match_gelu_gradient(op_id o);
  /// The sums may be of the operand, or of a dense value of more axes that is there.
  void match_sums(op_id o);
  /// Makes one of a product, ops that follow as its epilogue, which reads one other value, and sums of something.
  bool join_product(op_id product, std::span<op_id const> epilogue, bool keeps_step, product_sums sums = {},
                    op_id sum = nothing<op_id>);
  /// Whether an op that may join gives the sums of x, dense, over all axes but the last.
  bool sums_columns(op_id sum, value_id x) const;
  /// Whether v has the elements of x, of two axes or more, in its order.
  bool shows_all_of(value_id v, value_id x) const;

  // Functions of rows and channels, reductions.
  /// An op that is an anchor, without steps; none if it is none.
  std::optional<op::fused> anchor_at(op_id o) const;
  void match_reduction(op_id o, op::fused made);
  void match_rows(op_id o, op::fused const& plain);
  bool join_rows(op_id o, op::fused made, chain const& before, chain const& after);
  /// What makes the anchor's argument.
  chain before_of(op_id o);
  /// What reads the anchor's result: the first op that does, if it may, and what alone reads that one's.
  chain after_of(op_id o, chain const& before);
  op_id first_reader(value_id v) const;
  bool is_read_elsewhere(value_id v, op_id o) const;
  /// Whether an op is elementwise, may be a part of another one, and gives a value of the shape that anchor o reads.
  bool may_be_beside(op_id p, op_id o) const;
  /// Whether op p may wait until the place of op o, which comes later; ops `with` wait as well.
  bool may_wait(op_id p, op_id o, std::span<op_id const> with) const;

  // Chains, each named by the op that makes its result.
  /// Grows them in the graph's order.
  void grow_chains();
  /// Takes chains of a graph of the same ops with other extents; false, and none, where the ops of one have several shapes
  /// here.
  bool take_chains(std::span<std::vector<op_id> const> like);
  bool can_be_step(op_id o) const;
  /// Lets one of the chains whose results a chain reads join it; whether there was one.
  bool grow_chain(op_id o);
  /// Whether chain p, whose result chain o reads, may be part of o.
  bool may_join_chain(op_id p, op_id o, chain const& joining) const;
  /// Whether nothing is computed between the two but by them.
  bool is_next(op_id p, op_id o) const;

  table<storage_id, plain_vector<op_id>> sums_;  // ops that sum a value of the storage
  table<storage_id, std::size_t> last_reader_;   // its place; the number of ops: the storage stays
  table<op_id, op_id> chain_;                    // the op that makes its chain's result; nothing: it can be no step
  std::vector<plain_vector<op_id>> members_;     // of the chain that this op makes, in order
};

/// A program as fuse() makes it; with chains as in `like`, where possible.
fused_graph fused_by(op_graph const& g, fuse_options options, std::span<std::vector<op_id> const> like);

/// A recipe whose steps are fused as the first one was, where that is possible: a batch of another size may have values
/// of several shapes where they had one. (A trainer plans such a step anew.)
class fused_recipe final : public step_recipe {
 public:
  fused_recipe(std::shared_ptr<step_recipe const> plain, fuse_options options, std::vector<std::vector<op_id>> groups)
      : plain_(std::move(plain)),
        options_(options),
        groups_(std::move(groups)) {}
  model_ref model() const override { return plain_->model(); }
  training_program for_sample(void const* sample, void const* type, training_program const& like,
                              std::source_location at) const override {
    return fused(plain_->for_sample(sample, type, like, at), options_, groups_);
  }
  /// A step as fuse() makes it, steps for other samples included.
  static training_program fused(training_program p, fuse_options options,
                                std::span<std::vector<op_id> const> like = {}) {
    auto made = fused_by(p.program, options, like);
    if (!made.groups.empty()) take_rewritten(p, made);
    if (p.recipe) p.recipe = std::make_shared<fused_recipe>(p.recipe, options, std::move(made.groups));
    return p;
  }

 private:
  std::shared_ptr<step_recipe const> plain_;
  fuse_options options_;
  std::vector<std::vector<op_id>> groups_;
};

}  // namespace detail

/// The program with operators of the standard set fused. Throws neap::error for a graph with parts or a cycle.
/// O(ops + edges) for each operator made at most, and for a chain its size times its distance from what joins it.
inline fused_graph fuse(op_graph const& g, fuse_options options = {}) { return detail::fused_by(g, options, {}); }

/// A training step with operators fused. So are steps for samples of other sizes, which a trainer makes.
inline training_program fuse(training_program p, fuse_options options = {}) {
  return detail::fused_recipe::fused(std::move(p), options);
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/fuse.ipp>
#endif
