// Activation recovery: an activation whose argument is kept need not be kept itself. The gradient of gelu, silu or a
// normed relu works the activation out for the slope anyway; the weight's gradient behind it reads it from there.
//
//     h = gelu(u)          dh = dy w^T                         h = gelu(u), dies with its last reader forward
//     y = h w              dw = h^T dy        becomes          dh = dy w^T
//                          du = gelu_grad(dh, u)               du, h' = gelu_grad_and_result(dh, u)
//                                                              dw = h'^T dy
//
// u is kept for the slope in either form; h, which is as large, no longer is. The bits stay the same. Likewise
// relu_grad and batch_norm_grad of relu(batch_norm(x)) become batch_norm_relu_grad, which sees in x where the relu was
// open: then the relu's result is not kept for that either.
//
// An activation is recovered if the gradient that recovers it depends on none of its readers.
// Pins (ir/pins.hpp) hold: an activation that may not be computed again is not recovered, and no pinned gradient is replaced.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/channel_norm.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/train/program_copy.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace neap { inline namespace v0 {

struct with_recovered_activations {
  op_graph program;
  table<value_id, value_id> value;  // of the original graph -> of the program; nothing<value_id>: dead
  std::size_t count = 0;            // results that are no longer kept for the backward part
};

namespace detail {

/// Finds the results and writes the graph anew; what is known of operators' types comes through `match`.
class activation_recoverer {
 public:
  /// `loss`: what it needs is the forward part.
  activation_recoverer(op_graph const& g, value_id loss);

  /// y = F(x), whose gradient is an op that can give y too.
  template <class F>
  void match(op_id o) {
    using both = op::grad_and_result<F>;
    auto const* f = g_.as<F>(o);
    if (!f || !forward_[o]) return;
    auto const x = g_.inputs(o)[0];
    for (auto const u : g_.uses(x))
      if (u.op != o && g_.as<F>(u.op)) return;
    auto const gradient = only_late_reader<typename both::gradient_op>(x);
    if (gradient == nothing<op_id> || !(g_.type(g_.inputs(gradient)[0]) == g_.type(x)) ||
        !may_recover(g_.output(o), gradient, nothing<op_id>) || late_ == 0)
      return;
    replace(gradient, nothing<op_id>, nothing<op_id>, both::of(*f), facets_of<both>);
  }
  /// y = relu(batch_norm(x, w, b)).
  void match_normed_relu(op_id o);

  with_recovered_activations write();

 private:
  struct replacement {
    op_id gradient, slope, norm;  // the slope is gone; its place and the gradient's take the new operator
    value_id result;
    operator_facets const* facets;
    std::size_t attributes;  // where the new operator's lie in bytes_
  };

  bool is_slope(op_id o) const { return merged_[o] != no_id && found_[merged_[o]].slope == o; }
  /// What must run before o, given all that was decided.
  template <class F>
  void each_before(op_id o, F const& f) const {
    auto const inputs = g_.inputs(o);
    for (std::size_t i = 0; i < (is_slope(o) ? 1 : inputs.size()); ++i) {
      auto const p = !forward_[o] && from_[inputs[i]] != nothing<op_id> ? from_[inputs[i]] : g_.producer(inputs[i]);
      if (p != nothing<op_id>) f(p);
    }
    for (auto p : g_.order_after(o)) f(p);
  }
  /// The one op of this kind behind the forward part that reads v as its second argument.
  template <class Op>
  op_id only_late_reader(value_id v) const {
    op_id found = nothing<op_id>;
    for (auto const u : g_.uses(v)) {
      if (u.argument != 1 || forward_[u.op] || !g_.as<Op>(u.op)) continue;
      if (found != nothing<op_id>) return nothing<op_id>;
      found = u.op;
    }
    return found;
  }

  /// Whether all that reads y behind the forward part, but for `slope`, can wait for the gradient; late_: how many do.
  /// values_ is then y and its views.
  bool may_recover(value_id y, op_id gradient, op_id slope);
  template <class Op>
  void replace(op_id gradient, op_id slope, op_id norm, Op const& op, operator_facets const& facets) {
    auto const at = bytes_.size();
    bytes_.resize(at + (sizeof op + 15) / 16 * 16);
    std::memcpy(bytes_.data() + at, &op, sizeof op);
    merged_[gradient] = static_cast<std::uint32_t>(found_.size());
    if (slope != nothing<op_id>) merged_[slope] = merged_[gradient];
    found_.push_back({gradient, slope, norm, values_[0], &facets, at});
    for (auto v : values_) from_[v] = gradient;
  }

  /// What a reader behind the forward part reads for v.
  value_id late(program_copy& copy, value_id v);

  void write_merged(program_copy& copy, op_id o);
  void write_op(program_copy& copy, op_id o);

  op_graph const& g_;
  table<op_id, unsigned char> forward_;
  table<value_id, op_id> from_;           // the gradient that recovers it, of activations and their views
  table<op_id, std::uint32_t> merged_;    // gradients and slopes that are replaced: which of found_ replaces them
  table<op_id, std::uint32_t> seen_;      // in which round
  table<value_id, value_id> late_value_;  // the recovered activation, in the new program
  std::uint32_t round_ = 0;
  std::size_t late_ = 0;
  plain_vector<op_id> open_;
  plain_vector<value_id> values_, inputs_;
  plain_vector<replacement> found_;
  plain_vector<std::byte> bytes_;
};

template <class Op>
struct recover_by {
  static void match(activation_recoverer&, op_id) {}
};
template <class F>
struct recover_by<op::grad_and_result<F>> {
  static void match(activation_recoverer& r, op_id o) { r.match<F>(o); }
};
template <>
struct recover_by<op::batch_norm_relu_grad> {
  static void match(activation_recoverer& r, op_id o) { r.match_normed_relu(o); }
};
template <class... Op>
void match_results(activation_recoverer& r, op_id o, type_list<Op...>) {
  (recover_by<Op>::match(r, o), ...);
}

}  // namespace detail

/// The program of a training step with the activations recovered whose operator has its op::grad_and_result in the graph's
/// set, and those of relu(batch_norm(x)). `loss` divides the forward part from the backward one. Throws neap::error for a
/// graph with parts, or whose ids are not in a topological order. O(results * ops behind the forward part).
with_recovered_activations recover_activations(op_graph const& g, value_id loss);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/activation_recovery.ipp>
#endif
