// Losses: cross-entropy over logits and class numbers, the mean squared error. Each is one operator, so that neither
// probabilities nor differences are kept: cross-entropy keeps one number a row for its gradient.
#pragma once

#include <neap/backend/kernels/cross_entropy.hpp>
#include <neap/ir/operators/row_norm.hpp>
#include <neap/ir/operators/softmax.hpp>

namespace neap::inline v0::op {

namespace detail {
inline void require_targets(shape_context& c, int logits, int targets) {
  require_floating(c, logits);
  require_rank(c, logits, 1, "logits");
  require_dense_rows(c, logits);
  c.require(c.in(targets).element == dtype::i64, "targets must be i64, was given ", c.in(targets));
  c.require(c.in(targets).dims == without_last(c.in(logits).dims), "targets ", c.in(targets).dims,
            " do not go with logits ", c.in(logits).dims);
  require_dense(c, targets);
}
inline loss_reduction loss_form(bool per_row) { return per_row ? loss_reduction::none : loss_reduction::mean; }
}  // namespace detail

/// g, logits, targets, logsumexp -> dlogits, written over the logits where these die.
struct cross_entropy_grad {
  static constexpr std::string_view name = "cross_entropy_grad";
  static constexpr bool elementwise = true;
  static constexpr double flops = 10;
  std::int64_t ignore_index = -100;
  bool per_row = false;
  static constexpr auto attributes() {
    return std::array{field<&cross_entropy_grad::ignore_index>("ignore_index"),
                      field<&cross_entropy_grad::per_row>("per_row")};
  }
  void infer(shape_context& c) const {
    c.require_arity(4, 4);
    detail::require_targets(c, 1, 2);
    detail::require_same_element(c, 0, 1);
    detail::require_dims(c, 0, per_row ? c.in(2).dims : shape{}, "the gradient");
    detail::require_dense(c, 0);
    detail::require_dims(c, 3, c.in(2).dims, "logsumexp");
    detail::require_dense(c, 3);
    c.fresh(c.in(1));
  }
  void relate(dim_context& c) const {
    for (int k = 0; per_row && k < c.out(0).rank() - 1; ++k)
      for (int i = 0; i < 4; ++i) c.same(i, k, 0, k);
  }
  bytes_t workspace(work_context const& c) const { return neap::cross_entropy_workspace(c.in[1].type); }
};
/// logits [..., classes], targets [...] -> loss and logsumexp [...]. The loss is the mean over the rows whose target is
/// not ignore_index, or one a row (`per_row`, ignored rows 0). Only the second form can be cut along rows: how many rows
/// of a part count is not known beforehand.
struct cross_entropy {
  static constexpr std::string_view name = "cross_entropy";
  std::int64_t ignore_index = -100;
  bool per_row = false;
  static constexpr auto attributes() {
    return std::array{field<&cross_entropy::ignore_index>("ignore_index"), field<&cross_entropy::per_row>("per_row")};
  }
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    detail::require_targets(c, 0, 1);
    auto const element = detail::statistic(c.in(0).element);
    if (per_row) c.fresh(tensor_type{element, c.in(1).dims});
    else c.fresh(tensor_type{c.in(0).element, {}});
    c.fresh(tensor_type{element, c.in(1).dims});
  }
  void relate(dim_context& c) const {
    for (int k = 0; per_row && k < c.in(1).rank(); ++k)
      for (int i : {0, 1})
        for (int j : {0, 1}) c.same(i, k, j, k);
  }
  work cost(work_context const& c) const {
    work w = detail::streaming_work(c, 0);
    w.flops = 10 * static_cast<double>(c.in[0].type.count());
    return w;
  }
  bytes_t workspace(work_context const& c) const { return neap::cross_entropy_workspace(c.in[0].type); }
  void gradient(gradient_context& c) const {
    value_id const of_loss = c.grad(0), of_sums = c.grad(1);
    if (!c.wants(0)) return;
    auto const x = c.type(c.in(0));
    value_id dx = nothing<value_id>;
    if (of_loss != nothing<value_id>) {
      value_id const g = detail::in_element(c, dense(c, of_loss), x.element);
      dx = c.emit(cross_entropy_grad{ignore_index, per_row}, {g, c.in(0), c.in(1), c.out(1)});
    }
    if (of_sums != nothing<value_id>) {  // logsumexp's slope is softmax, in ignored rows too
      value_id const g = detail::in_element(c, detail::along_rows(c, of_sums), x.element);
      value_id const more = c.emit(mul{}, {c.emit(softmax{}, {c.in(0)}), g});
      dx = dx == nothing<value_id> ? more : c.emit(add{}, {dx, more});
    }
    c.give(0, dx);
  }
};
template <class Backend>
void run(Backend& b, cross_entropy const& op, kernel_arguments const& a) {
  neap::cross_entropy_forward(b, a.out[0], a.out[1], a.in[0], a.in[1], detail::loss_form(op.per_row), op.ignore_index,
                              a.workspace);
}
template <class Backend>
void run(Backend& b, cross_entropy_grad const& op, kernel_arguments const& a) {
  neap::cross_entropy_backward(b, a.out[0], a.in[0], a.in[1], a.in[3], a.in[2], detail::loss_form(op.per_row),
                               op.ignore_index, a.workspace);
}

/// g, x, y -> the gradient of mse to x, written over x or y where these die.
struct mse_grad {
  static constexpr std::string_view name = "mse_grad";
  static constexpr bool elementwise = true;
  static constexpr double flops = 3;
  void infer(shape_context& c) const {
    c.require_arity(3, 3);
    detail::require_dims(c, 0, {}, "the gradient");
    detail::require_same_type(c, 1, 2);
    detail::require_same_element(c, 0, 1);
    c.fresh(c.in(1));
  }
  void relate(dim_context&) const {}  // the mean's divisor is the number of all elements
};
/// x, y -> the mean of (x - y)^2, a scalar.
struct mse {
  static constexpr std::string_view name = "mse";
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    detail::require_floating(c, 0);
    detail::require_same_type(c, 0, 1);
    for (int i : {0, 1}) detail::require_dense(c, i);
    c.fresh(tensor_type{c.in(0).element, {}});
  }
  void relate(dim_context& c) const {
    for (int i : {0, 1})
      for (int k = 0; k < c.in(0).rank(); ++k) c.reduced(i, k, k, combine::mean);
  }
  work cost(work_context const& c) const {
    work w = detail::streaming_work(c, 0);
    w.flops = 3 * static_cast<double>(c.in[0].type.count());
    return w;
  }
  bytes_t workspace(work_context const& c) const { return neap::mse_workspace(c.in[0].type); }
  void gradient(gradient_context& c) const {
    if (c.wants(0)) c.give(0, c.emit(mse_grad{}, {c.grad(), c.in(0), c.in(1)}));
    if (c.wants(1)) c.give(1, c.emit(mse_grad{}, {c.grad(), c.in(1), c.in(0)}));
  }
};
template <class Backend>
void run(Backend& b, mse const&, kernel_arguments const& a) {
  neap::mse_forward(b, a.out[0], a.in[0], a.in[1], loss_reduction::mean, a.workspace);
}
template <class Backend>
void run(Backend& b, mse_grad const&, kernel_arguments const& a) {
  neap::mse_backward(b, a.out[0], a.in[0], a.in[1], a.in[2], loss_reduction::mean);
}

}  // namespace neap::inline v0::op
