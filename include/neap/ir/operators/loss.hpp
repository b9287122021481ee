// Losses: cross-entropy over logits and class numbers, the mean squared error; and of single elements the binary
// cross-entropy and Huber's. Each is one operator, so that neither probabilities nor differences are kept: cross-entropy
// keeps one number a row for its gradient.
#pragma once

#include <neap/ir/operators/reduction.hpp>
#include <neap/ir/operators/row_norm.hpp>
#include <neap/ir/operators/softmax.hpp>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
void require_targets(shape_context& c, int logits, int targets);
/// The targets of all rows, of which those at hand may be a part.
void require_all_targets(shape_context& c, int i);
}  // namespace detail

/// g, logits, targets, log_sum, [all targets] -> dlogits, written over the logits where these die.
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
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  bytes_t workspace(work_context const& c) const;
};
/// logits [..., classes], targets [...], [all targets] -> loss and log_sum [...], in f32 (f64 for f64). The loss is the
/// mean over the rows whose target is not ignore_index, or one a row (`per_row`, ignored rows 0). log_sum is the logarithm
/// of the sum of e^(logit - largest logit). A mean can be cut along rows if it is given all targets besides, the same value
/// as the targets: how many of them count is what each part's sum is divided by.
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
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, cross_entropy const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, cross_entropy_grad const& op, kernel_arguments const& a);

/// g, x, y -> the gradient of mse to x, written over x or y where these die.
struct mse_grad {
  static constexpr std::string_view name = "mse_grad";
  static constexpr bool elementwise = true;
  static constexpr double flops = 3;
  std::int64_t elements = 0;  // that the mean is over; 0: as many as x has
  static constexpr auto attributes() { return std::array{field<&mse_grad::elements>("elements")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  void cut(cut_context const& c);
  void gradient(gradient_context& c) const;
};
/// x, y -> the mean of (x - y)^2, a scalar.
struct mse {
  static constexpr std::string_view name = "mse";
  static constexpr precision_rule precision = precision_use::full;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
template <class Backend>
void run(Backend& b, mse const&, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, mse_grad const& op, kernel_arguments const& a);

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
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
  void gradient(gradient_context& c) const;
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
void run(Backend& b, binary_cross_entropy const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, binary_cross_entropy_grad const& op, kernel_arguments const& a);

/// x, y -> d^2 / 2 of each difference d = x - y up to delta in absolute value, beyond it delta (|d| - delta / 2).
struct huber {
  static constexpr std::string_view name = "huber";
  static constexpr precision_rule precision = precision_use::full;
  static constexpr int map_inputs = 2;
  static constexpr bool elementwise = true;
  static constexpr double flops = 6;
  double delta = 1;
  static constexpr auto attributes() { return std::array{field<&huber::delta>("delta")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
  template <class T>
  NEAP_HD T operator()(T x, T y) const {
    T const d = x - y, a = math::abs(d), limit = T(delta);
    return neap::detail::pick(a <= limit, T(0.5) * d * d, limit * (a - T(0.5) * limit));
  }
  void gradient(gradient_context& c) const;
};

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/loss.ipp>
#endif
