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
#include <neap/train/program_copy.hpp>
#include <neap/train/program_places.hpp>
#include <neap/train/training_step.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

namespace neap::inline v0 {

template <class G>
struct fused_epilogues {
  G program;
  table<value_id, value_id> value;  // of the graph that was given -> of the program; nothing<value_id>: in an operator
  std::vector<std::vector<op_id>> groups;  // which ops became one, in order, by their ids in the graph that was given
};

namespace detail {

/// Finds products with epilogues, and writes the graph anew.
class epilogue_fuser {
 public:
  epilogue_fuser(op_graph const& g, operator_facets const& facets);

  fused_epilogues<op_graph> write();

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  struct group {
    op::matmul_epilogue op;
    plain_vector<op_id> ops;  // in order; the last one's place is the operator's
    plain_vector<value_id> in, out;
  };

  /// Calls f(op) for the ops that are made together with o.
  template <class F>
  void each_member(op_id o, F const& f) const {
    if (group_[o] == none) return f(o);
    for (auto m : groups_[group_[o]].ops) f(m);
  }
  /// Calls f(op) for what must run before an op.
  template <class F>
  void each_before(op_id o, F const& f) const {
    for (auto v : g_.inputs(o))
      if (auto const p = g_.producer(v); p != nothing<op_id>) f(p);
    for (auto b : g_.order_after(o)) f(b);
  }
  void put(program_copy& copy, op_id o, fused_epilogues<op_graph>& out) {
    plain_vector<value_id> in;
    if (group_[o] == none) {
      for (auto v : g_.inputs(o)) in.push_back(copy.value[v]);
      return copy.put(o, g_.view(o), span_of(in));
    }
    auto const& made = groups_[group_[o]];
    for (auto v : made.in) in.push_back(copy.value[v]);
    copy.put(o, {&facets_, &made.op}, span_of(in), span_of(made.out));
    out.groups.emplace_back(made.ops.begin(), made.ops.end());
  }

  /// Whether an op may become a part of another one: it has one result, dense and in memory of its own.
  bool may_join(op_id o) const {
    if (group_[o] != none || !g_.may_replace(o) || g_.outputs(o).size() != 1) return false;
    auto const v = g_.output(o);
    auto const& r = g_.record(v);
    return r.alias == alias_kind::fresh && g_.overwrites(v) == nothing<value_id> &&
           g_.layout(v) == tensor_layout::dense(g_.type(v)) && g_.bytes(r.storage) == g_.type(v).bytes() &&
           g_.record(r.storage).updates == 0 && !g_.is_resident(r.storage) && !g_.is_overwritten(r.storage);
  }
  /// What makes v, if v has no reader but one, is not kept, and its maker may join.
  op_id alone_behind(value_id v) const {
    auto const p = g_.producer(v);
    return p != nothing<op_id> && g_.uses(v).size() == 1 && !g_.is_kept(v) && may_join(p) ? p : nothing<op_id>;
  }
  /// Whether ops may be one: no other op must run after one of them and before another one, by way of what is made
  /// together already.
  bool may_be_one(std::span<op_id const> ops);
  /// The product that an op adds a bias to, as its first operand; nothing if it does something else.
  op_id biased_product(op_id sum) const {
    if (!g_.as<op::add>(sum) || !may_join(sum)) return nothing<op_id>;
    auto const in = g_.inputs(sum);
    auto const product = alone_behind(in[0]);
    if (product == nothing<op_id> || !g_.as<op::matmul>(product)) return nothing<op_id>;
    auto const& y = g_.type(in[0]);
    return is_floating(y.element) && g_.type(in[1]) == tensor_type{y.element, {y.dims.back()}} &&
                   g_.type(g_.output(sum)) == y
               ? product
               : nothing<op_id>;
  }
  /// Makes ops one, if they may be; whether they are.
  bool join(group made) {
    if (!may_be_one(span_of(made.ops))) return false;
    std::sort(made.ops.begin(), made.ops.end(), [&](op_id a, op_id b) { return places_.place[a] < places_.place[b]; });
    for (auto o : made.ops) group_[o] = groups_.size();
    groups_.push_back(std::move(made));
    return true;
  }

  void match_activation(op_id o);
  void match_bias(op_id o);
  void match_gelu_gradient(op_id o);
  /// The sums may be of the operand, or of a dense value of more axes that is there.
  void match_sums(op_id o);
  /// Whether an op that may join gives the sums of x, dense, over all axes but the last.
  bool sums_columns(op_id sum, value_id x) const {
    return may_join(sum) && shows_all_of(g_.inputs(sum)[0], x) &&
           g_.type(g_.output(sum)) == tensor_type{g_.type(x).element, {g_.type(x).dims.back()}};
  }
  /// Whether v has the elements of x, of two axes or more, in its order.
  bool shows_all_of(value_id v, value_id x) const {
    return g_.layout(v).is_dense() && g_.layout(v).offset == g_.layout(x).offset &&
           g_.type(v).element == g_.type(x).element && g_.type(v).count() == g_.type(x).count() &&
           g_.type(v).rank() >= 1 && g_.type(v).dims.back() == g_.type(x).dims.back() &&
           g_.record(g_.storage(v)).updates == 0;
  }

  plain_vector<value_id> inputs_of(op_id product, value_id third) const {
    auto const in = g_.inputs(product);
    return {in[0], in[1], third};
  }

  op_graph const& g_;
  operator_facets const& facets_;
  program_places places_;
  table<op_id, std::size_t> group_;   // an index into groups_
  table<op_id, std::uint32_t> seen_;  // the last search that has met an op
  std::uint32_t search_ = 0;
  table<storage_id, plain_vector<op_id>> sums_;  // ops that sum a value of the storage
  std::vector<group> groups_;
};

/// A recipe whose steps have their epilogues fused.
template <class Ops>
class epilogue_recipe final : public step_recipe<Ops> {
 public:
  explicit epilogue_recipe(std::shared_ptr<step_recipe<Ops> const> plain) : plain_(std::move(plain)) {}
  training_program<Ops> for_sample(void const* sample, void const* type, training_program<Ops> const& like,
                                   std::source_location at) const override {
    return fused(plain_->for_sample(sample, type, like, at));
  }
  static training_program<Ops> fused(training_program<Ops> p) {
    auto made = epilogue_fuser(p.program, facets_of<op::matmul_epilogue>).write();
    fused_epilogues<basic_graph<Ops>> typed{basic_graph<Ops>(std::move(made.program)), std::move(made.value), {}};
    if (!made.groups.empty()) take_rewritten(p, typed);
    if (p.recipe) p.recipe = std::make_shared<epilogue_recipe>(p.recipe);
    return p;
  }

 private:
  std::shared_ptr<step_recipe<Ops> const> plain_;
};

}  // namespace detail

/// The program with its products and what follows them fused. Throws neap::error for a graph with parts or a cycle.
/// At most O(ops + edges) for each operator made.
template <class Ops>
fused_epilogues<basic_graph<Ops>> fuse_epilogues(basic_graph<Ops> const& g) {
  static_assert(Ops::template contains<op::matmul_epilogue>,
                "neap: fuse_epilogues needs op::matmul_epilogue in the graph's set");
  auto made = detail::epilogue_fuser(g, facets_of<op::matmul_epilogue>).write();
  return {basic_graph<Ops>(std::move(made.program)), std::move(made.value), std::move(made.groups)};
}

/// A training step with its products and what follows them fused. So are steps for samples of other sizes, which a trainer
/// makes.
template <class Ops>
training_program<Ops> fuse_epilogues(training_program<Ops> p) {
  static_assert(Ops::template contains<op::matmul_epilogue>,
                "neap: fuse_epilogues needs op::matmul_epilogue in the graph's set");
  return detail::epilogue_recipe<Ops>::fused(std::move(p));
}

}  // namespace neap::inline v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/fuse_epilogues.ipp>
#endif
