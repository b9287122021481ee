// Losses: cross-entropy over logits and class numbers, the mean squared error; and of single elements the binary
// cross-entropy and Huber's. Each is one operator, so that neither probabilities nor differences are kept: cross-entropy
// keeps one number a row for its gradient.
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
  c.require(c.in(targets).element == dtype::i64, "targets must be i64, was given ", c.in(targets), ": cast them");
  c.require(c.in(targets).dims == without_last(c.in(logits).dims), "targets ", c.in(targets).dims,
            " do not go with logits ", c.in(logits).dims);
  require_dense(c, targets);
}
/// The targets of all rows, of which those at hand may be a part.
inline void require_all_targets(shape_context& c, int i) {
  if (i >= c.arity()) return;
  c.require(c.in(i).element == dtype::i64, "all targets must be i64, was given ", c.in(i));
  require_dense(c, i);
}
inline loss_reduction loss_form(bool per_row) { return per_row ? loss_reduction::none : loss_reduction::mean; }
}  // namespace detail

/// g, logits, targets, logsumexp, [all targets] -> dlogits, written over the logits where these die.
struct cross_entropy_grad {
  static constexpr std::string_view name = "cross_entropy_grad";
  static constexpr bool checks_numbers = true;
  static constexpr bool elementwise = true;
  static constexpr double flops = 10;
  std::int64_t ignore_index = -100;
  bool per_row = false;
  double smoothing = 0;
  static constexpr auto attributes() {
    return std::array{field<&cross_entropy_grad::ignore_index>("ignore_index"),
                      field<&cross_entropy_grad::per_row>("per_row"),
                      field<&cross_entropy_grad::smoothing>("smoothing")};
  }
  void infer(shape_context& c) const {
    c.require_arity(4, per_row ? 4 : 5);
    detail::require_targets(c, 1, 2);
    detail::require_all_targets(c, 4);
    auto const element = computed_in(c.in(1).element);
    c.require(c.in(0).element == element, "the gradient must be ", element, ", was given ", c.in(0));
    detail::require_dims(c, 0, per_row ? c.in(2).dims : shape{}, "the gradient");
    detail::require_dense(c, 0);
    detail::require_dims(c, 3, c.in(2).dims, "logsumexp");
    detail::require_dense(c, 3);
    c.fresh(c.in(1));
  }
  void relate(dim_context& c) const {
    for (int k = 0; (per_row || c.arity() > 4) && k < c.out(0).rank() - 1; ++k)
      for (int i = per_row ? 0 : 1; i < 4; ++i) c.same(i, k, 0, k);
  }
  bytes_t workspace(work_context const& c) const { return neap::cross_entropy_workspace(c.in[1].type); }
};
/// logits [..., classes], targets [...], [all targets] -> loss and logsumexp [...], in f32 (f64 for f64). The loss is the mean over the rows whose
/// target is not ignore_index, or one a row (`per_row`, ignored rows 0). A mean can be cut along rows if it is given all
/// targets besides, the same value as the targets: how many of them count is what each part's sum is divided by.
struct cross_entropy {
  static constexpr std::string_view name = "cross_entropy";
  static constexpr bool checks_numbers = true;
  std::int64_t ignore_index = -100;
  bool per_row = false;
  double smoothing = 0;  // the share of the target that all classes have alike
  static constexpr auto attributes() {
    return std::array{field<&cross_entropy::ignore_index>("ignore_index"), field<&cross_entropy::per_row>("per_row"),
                      field<&cross_entropy::smoothing>("smoothing")};
  }
  void infer(shape_context& c) const {
    c.require_arity(2, per_row ? 2 : 3);
    detail::require_targets(c, 0, 1);
    detail::require_all_targets(c, 2);
    c.require(smoothing >= 0 && smoothing <= 1, "the smoothing must be in [0, 1], was given ", smoothing);
    auto const element = computed_in(c.in(0).element);
    c.fresh(tensor_type{element, per_row ? c.in(1).dims : shape{}});
    c.fresh(tensor_type{element, c.in(1).dims});
  }
  void relate(dim_context& c) const {
    for (int k = 0; (per_row || c.arity() > 2) && k < c.in(1).rank(); ++k)
      for (int i : {0, 1}) {
        if (per_row) c.same(i, k, 0, k);
        else c.reduced(i, k, k);
        c.same(i, k, 1, k);
      }
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
      value_id const g = dense(c, of_loss);
      cross_entropy_grad const op{ignore_index, per_row, smoothing};
      dx = c.arity() > 2 ? c.emit(op, {g, c.in(0), c.in(1), c.out(1), c.in(2)})
                         : c.emit(op, {g, c.in(0), c.in(1), c.out(1)});
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
                              a.workspace, op.smoothing, detail::optional(a.in, 2));
}
template <class Backend>
void run(Backend& b, cross_entropy_grad const& op, kernel_arguments const& a) {
  neap::cross_entropy_backward(b, a.out[0], a.in[0], a.in[1], a.in[3], a.in[2], detail::loss_form(op.per_row),
                               op.ignore_index, a.workspace, op.smoothing, detail::optional(a.in, 4));
}

/// g, x, y -> the gradient of mse to x, written over x or y where these die.
struct mse_grad {
  static constexpr std::string_view name = "mse_grad";
  static constexpr bool elementwise = true;
  static constexpr double flops = 3;
  std::int64_t elements = 0;  // that the mean is over; 0: as many as x has
  static constexpr auto attributes() { return std::array{field<&mse_grad::elements>("elements")}; }
  void infer(shape_context& c) const {
    c.require_arity(3, 3);
    detail::require_dims(c, 0, {}, "the gradient");
    detail::require_same_type(c, 1, 2);
    detail::require_same_element(c, 0, 1);
    c.fresh(c.in(1));
  }
  void relate(dim_context& c) const {
    for (int i : {1, 2})
      for (int k = 0; k < c.out(0).rank(); ++k) c.same(i, k, 0, k);
  }
  void cut(cut_context const& c) {  // the mean's divisor stays
    if (elements == 0) elements = c.out[0].type.count();
  }
  void gradient(gradient_context& c) const {  // of g (x - y) 2 / n
    auto const n = std::max<std::int64_t>(1, elements == 0 ? c.type(c.in(1)).count() : elements);
    value_id const h = detail::affine(c, c.grad(), 2 / static_cast<double>(n));
    if (c.wants(0))
      c.give(0, reduced_to(c, detail::product(c, h, detail::difference(c, c.in(1), c.in(2))), c.type(c.in(0)).dims));
    if (!c.wants(1) && !c.wants(2)) return;
    value_id const dx = detail::product(c, h, c.in(0));
    if (c.wants(1)) c.give(1, dx);
    if (c.wants(2)) c.give(2, c.emit(neg{}, {dx}));
  }
};
/// x, y -> the mean of (x - y)^2, a scalar.
struct mse {
  static constexpr std::string_view name = "mse";
  static constexpr precision_rule precision = precision_use::full;
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
void run(Backend& b, mse_grad const& op, kernel_arguments const& a) {
  neap::mse_backward(b, a.out[0], a.in[0], a.in[1], a.in[2], loss_reduction::mean, op.elements);
}

/// g, x, targets -> the gradient of binary_cross_entropy to x.
struct binary_cross_entropy_grad {
  static constexpr std::string_view name = "binary_cross_entropy_grad";
  static constexpr double flops = 12;
  bool of_probabilities = false;
  static constexpr auto attributes() {
    return std::array{field<&binary_cross_entropy_grad::of_probabilities>("of_probabilities")};
  }
  NEAP_SCALAR_FACETS(3, true)
  void gradient(gradient_context& c) const {  // of g (sigmoid(x) - t), or g (x - t) / q, q = max(x (1 - x), 1e-12)
    using detail::affine, detail::difference, detail::product;
    value_id const h = c.grad(), x = c.in(1);
    auto const give = [&](int i, value_id v) { c.give(i, reduced_to(c, v, c.type(c.in(i)).dims)); };
    if (c.wants(0)) give(0, c.emit(*this, {h, x, c.in(2)}));
    if (!c.wants(1) && !c.wants(2)) return;
    value_id g = product(c, h, c.in(0));
    if (!of_probabilities) {
      if (c.wants(1)) give(1, c.emit(grad_of<sigmoid>{}, {g, c.emit(sigmoid{}, {x})}));
    } else {
      value_id const q = c.emit(clamp{1e-12}, {product(c, x, affine(c, x, -1, 1))});
      g = c.emit(div{}, {g, q});
      if (c.wants(1)) {
        value_id const slope = c.emit(grad_of<clamp>{clamp{1e-12}}, {affine(c, x, -2, 1), q});  // of q
        value_id const log_slope = c.emit(div{}, {product(c, difference(c, x, c.in(2)), slope), q});
        give(1, product(c, g, affine(c, log_slope, -1, 1)));
      }
    }
    if (c.wants(2)) give(2, c.emit(neg{}, {g}));
  }
};
/// x, targets in [0, 1] -> -t log p - (1 - t) log(1 - p) of each element, where p is sigmoid(x), or x itself; then its
/// logarithms are at least -100, and a p outside [0, 1] gives a NaN.
struct binary_cross_entropy {
  static constexpr std::string_view name = "binary_cross_entropy";
  static constexpr precision_rule precision = precision_use::full;
  static constexpr bool elementwise = true;
  static constexpr double flops = 20;
  bool of_probabilities = false;
  static constexpr auto attributes() {
    return std::array{field<&binary_cross_entropy::of_probabilities>("of_probabilities")};
  }
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    detail::require_floating(c, 0);
    detail::require_same_type(c, 0, 1);  // a column and a row would broadcast to a table
    c.fresh(c.in(0));
  }
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
  void gradient(gradient_context& c) const {
    if (c.wants(0)) c.give(0, c.emit(binary_cross_entropy_grad{of_probabilities}, {c.grad(), c.in(0), c.in(1)}));
    if (!c.wants(1)) return;
    if (!of_probabilities) return c.give(1, c.emit(neg{}, {c.emit(mul{}, {c.grad(), c.in(0)})}));
    value_id const rest = c.emit(add_scalar{1}, {c.emit(neg{}, {c.in(0)})});
    auto const bounded_log = [&](value_id p) { return c.emit(clamp{-100}, {c.emit(log{}, {p})}); };
    c.give(1, c.emit(mul{}, {c.grad(), c.emit(sub{}, {bounded_log(rest), bounded_log(c.in(0))})}));
  }
};
namespace detail {
/// Written so that a loss near 0 keeps its digits.
template <bool OfProbabilities>
struct binary_cross_entropy_function {
  template <class T>
  NEAP_HD T operator()(T x, T t) const {
    if constexpr (OfProbabilities) {
      T const log_rest = neap::detail::pick(x == T(1), T(-100), math::log1p(-x));
      return -(t * math::max(math::log(x), T(-100)) + (T(1) - t) * math::max(log_rest, T(-100)));
    } else {
      T const beyond = neap::detail::pick(x > T(0), x * (T(1) - t), -x * t);
      return beyond + math::log1p(math::exp(-math::abs(x)));
    }
  }
  template <class T>
  NEAP_HD T operator()(T g, T x, T t) const {
    if constexpr (OfProbabilities) return g * (x - t) / math::max(x * (T(1) - x), T(1e-12));
    else return g * (math::sigmoid(x) - t);
  }
};
}  // namespace detail
template <class Backend>
void run(Backend& b, binary_cross_entropy const& op, kernel_arguments const& a) {
  if (op.of_probabilities) neap::map(b, detail::binary_cross_entropy_function<true>{}, a.out[0], a.in[0], a.in[1]);
  else neap::map(b, detail::binary_cross_entropy_function<false>{}, a.out[0], a.in[0], a.in[1]);
}
template <class Backend>
void run(Backend& b, binary_cross_entropy_grad const& op, kernel_arguments const& a) {
  if (op.of_probabilities)
    neap::map(b, detail::binary_cross_entropy_function<true>{}, a.out[0], a.in[0], a.in[1], a.in[2]);
  else neap::map(b, detail::binary_cross_entropy_function<false>{}, a.out[0], a.in[0], a.in[1], a.in[2]);
}

/// x, y -> d^2 / 2 of each difference d = x - y up to delta in absolute value, beyond it delta (|d| - delta / 2).
struct huber {
  static constexpr std::string_view name = "huber";
  static constexpr precision_rule precision = precision_use::full;
  static constexpr int map_inputs = 2;
  static constexpr bool elementwise = true;
  static constexpr double flops = 6;
  double delta = 1;
  static constexpr auto attributes() { return std::array{field<&huber::delta>("delta")}; }
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    detail::require_floating(c, 0);
    detail::require_same_type(c, 0, 1);
    c.require(delta > 0, "delta must be above 0, was given ", delta);
    c.fresh(c.in(0));
  }
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
  template <class T>
  NEAP_HD T operator()(T x, T y) const {
    T const d = x - y, a = math::abs(d), limit = T(delta);
    return neap::detail::pick(a <= limit, T(0.5) * d * d, limit * (a - T(0.5) * limit));
  }
  void gradient(gradient_context& c) const {
    value_id const slope = c.emit(clamp{-delta, delta}, {c.emit(sub{}, {c.in(0), c.in(1)})});
    value_id const g = c.emit(mul{}, {c.grad(), slope});
    if (c.wants(0)) c.give(0, g);
    if (c.wants(1)) c.give(1, c.emit(neg{}, {g}));
  }
};

}  // namespace neap::inline v0::op
