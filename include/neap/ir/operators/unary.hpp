// Scalar functions of one tensor, with their slopes. The gradient of each is an operator of its own, grad_of<F>: it reads
// the incoming gradient and either the argument or the result of F, whichever says enough, and may take over either.
//
// A user's operator of this kind is a name, a function and a slope:
//
//   struct softsign : op::unary<softsign> {
//     static constexpr std::string_view name = "softsign";
//     template <class T> NEAP_HD T operator()(T x) const { return x / (T(1) + math::abs(x)); }
//     template <class T> NEAP_HD T slope(T x) const { T const d = T(1) + math::abs(x); return T(1) / (d * d); }
//   };
//   tensor const y = neap::apply(softsign{}, {x});
//
// It may have attributes: data members, named by attributes() and set by a constructor; the slope sees them too. Gradients
// of its gradient need the slope's own slope, as ops: a function that gives g times it at v, where v is what the slope
// reads,
//
//     value_id curve(gradient_context& c, value_id g, value_id v) const { ... }
//
// or  static constexpr bool straight = true  where it is 0.
#pragma once

#include <neap/core/math.hpp>
#include <neap/ir/operators/arithmetic.hpp>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
/// v * scale + shift, for gradient rules.
value_id affine(gradient_context& c, value_id v, double scale, double shift = 0);

template <class F>
concept has_curve = requires(F const& f, gradient_context& c, value_id v) { f.curve(c, v, v); };
template <class F>
concept is_straight = bool(F::straight);

template <class F>
constexpr bool slope_reads_result = [] {
  if constexpr (requires { F::slope_of_result; }) return bool{F::slope_of_result};
  else return false;
}();
void infer_grad_and_result(shape_context& c);
}  // namespace detail

/// g, v -> g * F's slope, where v is F's argument, or its result if F::slope_of_result.
template <class F>
struct grad_of : scalar_function<2, true> {
  static constexpr std::string_view name = detail::gradient_name<F>::value;
  static constexpr double flops = neap::detail::flops_v<F> + 1;
  [[no_unique_address]] F f{};  // the first bytes, so that its attributes are found there

  grad_of() = default;
  explicit grad_of(F const& of) : f(of) {}
  static constexpr auto attributes()
    requires neap::detail::has_attributes<F>
  {
    return F::attributes();
  }
  template <class T>
  NEAP_HD T operator()(T g, T v) const {
    return g * f.slope(v);
  }
  void gradient(gradient_context& c) const {
    value_id const h = c.grad();
    if (c.wants(0)) c.give(0, reduced_to(c, c.emit(*this, {h, c.in(1)}), c.type(c.in(0)).dims));
    if (!c.wants(1)) return;
    if constexpr (detail::has_curve<F>)
      c.give(1, reduced_to(c, f.curve(c, detail::product(c, h, c.in(0)), c.in(1)), c.type(c.in(1)).dims));
    else if constexpr (!detail::is_straight<F>)
      throw_error({"no gradient of this gradient is known: ", F::name, " defines no curve"});
  }
};

/// g, x -> what grad_of<F> gives, and F(x) once more, for F whose slope reads the argument and works out most of F on the
/// way: who keeps the argument need not keep the result (train/activation_recovery.hpp).
template <class F>
struct grad_and_result {
  using gradient_op = grad_of<F>;
  static constexpr std::string_view name = detail::gradient_name<F, detail::and_result>::value;
  static constexpr double flops = gradient_op::flops;  // of each output
  static constexpr bool elementwise = true;
  static grad_and_result of(F const&) { return {}; }
  void infer(shape_context& c) const { detail::infer_grad_and_result(c); }
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
  template <class T>
  NEAP_HD std::array<T, 2> operator()(T g, T x) const {
    return {g * F{}.slope(x), F{}(x)};
  }
};
template <class Backend, class F>
void run(Backend& b, grad_and_result<F> const& op, kernel_arguments const& a);

/// g, x -> g * F's slope at x, for F whose slope reads the result: what gradients in bf16 and f16 are where the rounded
/// result does not say enough. (1 - y^2 has no digit left where y is rounded to 1.) F has it as slope_at(x), and a curve
/// or none at all.
template <class F>
struct grad_at : scalar_function<2, true> {
  static constexpr std::string_view name = detail::gradient_name<F, detail::at_argument>::value;
  static constexpr double flops = neap::detail::flops_v<F> + 2;
  [[no_unique_address]] F f{};  // the first bytes, so that its attributes are found there

  grad_at() = default;
  explicit grad_at(F const& of) : f(of) {}
  static constexpr auto attributes()
    requires neap::detail::has_attributes<F>
  {
    return F::attributes();
  }
  template <class T>
  NEAP_HD T operator()(T g, T x) const {
    return g * f.slope_at(x);
  }
  void gradient(gradient_context& c) const {
    value_id const h = c.grad(), x = c.in(1);
    if (c.wants(0)) c.give(0, reduced_to(c, c.emit(*this, {h, x}), c.type(c.in(0)).dims));
    if constexpr (detail::has_curve<F>)
      if (c.wants(1)) {
        value_id const curve = f.curve(c, detail::product(c, h, c.in(0)), c.emit(f, {x}));
        c.give(1, reduced_to(c, c.emit(*this, {curve, x}), c.type(x).dims));
      }
  }
};

namespace detail {
/// The gradient of a scalar function: of its argument, of its result, or of both types of operand by their element type.
template <class F>
void scalar_gradient(gradient_context& c, F const& f) {
  if constexpr (requires { f.slope_at(0.f); })
    if (is_low(c.type(c.in(0)).element)) return c.give(0, c.emit(grad_at<F>(f), {c.grad(), c.in(0)}));
  c.give(0, c.emit(grad_of<F>(f), {c.grad(), slope_reads_result<F> ? c.out(0) : c.in(0)}));
}
}  // namespace detail

/// y = f(x), with y's slope(x) or, if slope_of_result is set, slope(y); then with slope_at(x) too, it is that of x in bf16
/// and f16.
template <class Self>
struct unary : scalar_function<1, true> {
  void gradient(gradient_context& c) const {
    static_assert(
        requires(Self const& f, float x) { f.slope(x); },
        "neap: this operator of one tensor lacks its slope: template <class T> NEAP_HD T slope(T x) const; one without a "
        "gradient is a neap::op::scalar_function<1, false>");
    detail::scalar_gradient(c, static_cast<Self const&>(*this));
  }
};

/// The slope of e^x is e^x: the gradient is g * y.
struct exp : unary<exp> {
  static constexpr std::string_view name = "exp";
  static constexpr bool slope_of_result = true;
  static constexpr double flops = 8;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::exp(x);
  }
  template <class T>
  NEAP_HD T slope(T y) const {
    return y;
  }
  template <class T>
  NEAP_HD T slope_at(T x) const {
    return math::exp(x);
  }
  value_id curve(gradient_context&, value_id g, value_id) const { return g; }
};
struct log : unary<log> {
  static constexpr std::string_view name = "log";
  static constexpr double flops = 8;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::log(x);
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    return T(1) / x;
  }
  value_id curve(gradient_context& c, value_id g, value_id x) const;
};
struct sqrt : unary<sqrt> {
  static constexpr std::string_view name = "sqrt";
  static constexpr bool slope_of_result = true;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::sqrt(x);
  }
  template <class T>
  NEAP_HD T slope(T y) const {
    return T(0.5) / y;
  }
  template <class T>
  NEAP_HD T slope_at(T x) const {
    return T(0.5) / math::sqrt(x);
  }
  value_id curve(gradient_context& c, value_id g, value_id y) const;
};
struct rsqrt : unary<rsqrt> {
  static constexpr std::string_view name = "rsqrt";
  static constexpr bool slope_of_result = true;
  static constexpr double flops = 2;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::rsqrt(x);
  }
  template <class T>
  NEAP_HD T slope(T y) const {
    return T(-0.5) * y * y * y;
  }
  template <class T>
  NEAP_HD T slope_at(T x) const {
    return T(-0.5) * math::rsqrt(x) / x;
  }
  value_id curve(gradient_context& c, value_id g, value_id y) const;
};
struct reciprocal : unary<reciprocal> {
  static constexpr std::string_view name = "reciprocal";
  static constexpr bool slope_of_result = true;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return T(1) / x;
  }
  template <class T>
  NEAP_HD T slope(T y) const {
    return -y * y;
  }
  template <class T>
  NEAP_HD T slope_at(T x) const {
    return T(-1) / x / x;
  }
  value_id curve(gradient_context& c, value_id g, value_id y) const;
};
/// The slope at 0 is 0.
struct abs : unary<abs> {
  static constexpr std::string_view name = "abs";
  static constexpr bool straight = true;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::abs(x);
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    return neap::detail::pick(x > T(0), T(1), T(0)) - neap::detail::pick(x < T(0), T(1), T(0));
  }
};
struct square : unary<square> {
  static constexpr std::string_view name = "square";
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x * x;
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    return T(2) * x;
  }
  value_id curve(gradient_context& c, value_id g, value_id) const { return detail::affine(c, g, 2); }
};
struct tanh : unary<tanh> {
  static constexpr std::string_view name = "tanh";
  static constexpr bool slope_of_result = true;
  static constexpr double flops = 12;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::tanh(x);
  }
  template <class T>
  NEAP_HD T slope(T y) const {
    return T(1) - y * y;
  }
  template <class T>
  NEAP_HD T slope_at(T x) const {
    T const e = math::exp(T(-2) * math::abs(x)), n = T(1) + e;
    return T(4) * e / (n * n);
  }
  value_id curve(gradient_context& c, value_id g, value_id y) const;
};
struct sigmoid : unary<sigmoid> {
  static constexpr std::string_view name = "sigmoid";
  static constexpr bool slope_of_result = true;
  static constexpr double flops = 10;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::sigmoid(x);
  }
  template <class T>
  NEAP_HD T slope(T y) const {
    return y * (T(1) - y);
  }
  template <class T>
  NEAP_HD T slope_at(T x) const {
    T const e = math::exp(-math::abs(x)), n = T(1) + e;
    return e / (n * n);
  }
  value_id curve(gradient_context& c, value_id g, value_id y) const;
};
/// max(x, 0); a NaN stays one. The slope at 0 is 0.
struct relu : unary<relu> {
  static constexpr std::string_view name = "relu";
  static constexpr bool slope_of_result = true, straight = true;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::max(x, T(0));
  }
  template <class T>
  NEAP_HD T slope(T y) const {
    return neap::detail::pick(y > T(0), T(1), T(0));  // T(y > 0) is a branch on vectors of 256 bits
  }
};
struct silu : unary<silu> {
  static constexpr std::string_view name = "silu";
  static constexpr double flops = 11;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::silu(x);
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    return math::silu_slope(x);
  }
  value_id curve(gradient_context& c, value_id g, value_id x) const;
};
struct erf : unary<erf> {
  static constexpr std::string_view name = "erf";
  static constexpr double flops = 12;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::erf(x);
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    return T(1.12837916709551257390) * math::exp(-x * x);
  }
  value_id curve(gradient_context& c, value_id g, value_id x) const;
};
/// log(1 + e^x).
struct softplus : unary<softplus> {
  static constexpr std::string_view name = "softplus";
  static constexpr double flops = 16;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::softplus(x);
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    return math::sigmoid(x);
  }
  value_id curve(gradient_context& c, value_id g, value_id x) const;
};
/// x, or alpha (e^x - 1) where x is not above 0 (Clevert et al. 2016). The gradient may read the result, so alpha is not
/// negative.
struct elu {
  static constexpr std::string_view name = "elu";
  static constexpr bool slope_of_result = true;
  static constexpr double flops = 12;
  double alpha = 1;
  static constexpr auto attributes() { return std::array{field<&elu::alpha>("alpha")}; }
  static constexpr int map_inputs = 1;
  static constexpr bool elementwise = true;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::max(x, T(0)) + T(alpha) * math::expm1(math::min(x, T(0)));
  }
  template <class T>
  NEAP_HD T slope(T y) const {
    return y > T(0) ? T(1) : y + T(alpha);
  }
  template <class T>
  NEAP_HD T slope_at(T x) const {
    return neap::detail::pick(x > T(0), T(1), T(alpha) * math::exp(math::min(x, T(0))));
  }
  /// g where the result is not above 0.
  value_id curve(gradient_context& c, value_id g, value_id y) const;
  void gradient(gradient_context& c) const { detail::scalar_gradient(c, *this); }
};
struct sin : unary<sin> {
  static constexpr std::string_view name = "sin";
  static constexpr double flops = 12;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::sin(x);
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    return math::cos(x);
  }
  value_id curve(gradient_context& c, value_id g, value_id x) const;
};
struct cos : unary<cos> {
  static constexpr std::string_view name = "cos";
  static constexpr double flops = 12;
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::cos(x);
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    return -math::sin(x);
  }
  value_id curve(gradient_context& c, value_id g, value_id x) const;
};

// ---------------------------------------------------------------------------------- steps: no slope anywhere

/// -1, 0 or 1; a NaN stays one.
struct sign : scalar_function<1, false> {
  static constexpr std::string_view name = "sign";
  template <class T>
  NEAP_HD T operator()(T x) const {
    return neap::detail::pick(x != x, x,
                              neap::detail::pick(x > T(0), T(1), T(0)) - neap::detail::pick(x < T(0), T(1), T(0)));
  }
  void gradient(gradient_context& c) const { c.grad(); }  // zeros
};
/// The largest whole number that is not above x.
struct floor : scalar_function<1, true> {
  static constexpr std::string_view name = "floor";
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::floor(x);
  }
  void gradient(gradient_context& c) const { c.grad(); }
};
/// The nearest whole number, the even one of two.
struct round : scalar_function<1, true> {
  static constexpr std::string_view name = "round";
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::round(x);
  }
  void gradient(gradient_context& c) const { c.grad(); }
};

// ---------------------------------------------------------------------------------- with attributes

namespace detail {
/// Facets of a scalar function that has attributes: data members and a base would need two pairs of braces.
#define NEAP_SCALAR_FACETS(n, only_floating)                                             \
  static constexpr int map_inputs = n;                                                   \
  static constexpr bool elementwise = true, integral = !(only_floating);                 \
  void infer(shape_context& c) const { scalar_function<n, only_floating>::infer_as(c); } \
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
}  // namespace detail

struct gelu_grad {
  static constexpr std::string_view name = "gelu_grad";
  static constexpr double flops = 24;
  bool tanh_form = false;
  static constexpr auto attributes() { return std::array{field<&gelu_grad::tanh_form>("tanh_form")}; }
  NEAP_SCALAR_FACETS(2, true)
  void gradient(gradient_context& c) const;
};
/// x * Phi(x), or GPT-2's approximation of it by tanh.
struct gelu {
  static constexpr std::string_view name = "gelu";
  static constexpr double flops = 14;
  bool tanh_form = false;
  static constexpr auto attributes() { return std::array{field<&gelu::tanh_form>("tanh_form")}; }
  NEAP_SCALAR_FACETS(1, true)
  void gradient(gradient_context& c) const { c.give(0, c.emit(gelu_grad{tanh_form}, {c.grad(), c.in(0)})); }
};
namespace detail {
template <bool TanhForm>
struct gelu_function {
  template <class T>
  NEAP_HD T operator()(T x) const {
    return TanhForm ? math::gelu_tanh(x) : math::gelu(x);
  }
  template <class T>
  NEAP_HD T operator()(T g, T x) const {
    return g * (TanhForm ? math::gelu_tanh_slope(x) : math::gelu_slope(x));
  }
};
template <bool TanhForm>
struct gelu_grad_and_result {
  template <class T>
  NEAP_HD std::array<T, 2> operator()(T g, T x) const {
    gelu_function<TanhForm> const f;
    return {f(g, x), f(x)};
  }
};
}  // namespace detail
template <>
struct grad_and_result<gelu> {
  using gradient_op = gelu_grad;
  static constexpr std::string_view name = detail::gradient_name<gelu, detail::and_result>::value;
  static constexpr double flops = 13;  // of each output
  static constexpr bool elementwise = true;
  bool tanh_form = false;
  static constexpr auto attributes() { return std::array{field<&grad_and_result::tanh_form>("tanh_form")}; }
  static grad_and_result of(gelu const& f) { return {f.tanh_form}; }
  void infer(shape_context& c) const { detail::infer_grad_and_result(c); }
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
};
template <class Backend>
void run(Backend& b, grad_and_result<gelu> const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, gelu const& op, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, gelu_grad const& op, kernel_arguments const& a);

/// g, x -> g * slope of leaky_relu at x.
struct leaky_relu_grad {
  static constexpr std::string_view name = "leaky_relu_grad";
  static constexpr double flops = 2;
  double slope = 0.01;
  static constexpr auto attributes() { return std::array{field<&leaky_relu_grad::slope>("slope")}; }
  NEAP_SCALAR_FACETS(2, true)
  template <class T>
  NEAP_HD T operator()(T g, T v) const {
    return g * (T(slope) + neap::detail::pick(v > T(0), T(1), T(0)) * (T(1) - T(slope)));
  }
  void gradient(gradient_context& c) const;
};
/// x, or slope * x where x is negative. A slope of at least 0 lets the gradient read the result.
struct leaky_relu {
  static constexpr std::string_view name = "leaky_relu";
  static constexpr double flops = 2;
  double slope = 0.01;
  static constexpr auto attributes() { return std::array{field<&leaky_relu::slope>("slope")}; }
  NEAP_SCALAR_FACETS(1, true)
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::max(x, T(0)) + T(slope) * math::min(x, T(0));
  }
  void gradient(gradient_context& c) const;
};

namespace detail {
/// A tensor and a number. Integers stay integers, so the number must be one; booleans are no numbers.
void infer_with_number(shape_context& c, double value);
#define NEAP_WITH_NUMBER_FACETS(self)                                                     \
  static constexpr auto attributes() { return std::array{field<&self::value>("value")}; } \
  static constexpr int map_inputs = 1;                                                    \
  static constexpr bool elementwise = true, integral = true;                              \
  void infer(shape_context& c) const { detail::infer_with_number(c, value); }             \
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
}  // namespace detail

/// x + value. On integers the value must be whole.
struct add_scalar {
  static constexpr std::string_view name = "add_scalar";
  double value = 0;
  NEAP_WITH_NUMBER_FACETS(add_scalar)
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x + static_cast<T>(value);
  }
  void gradient(gradient_context& c) const { c.give(0, c.grad()); }
};
/// x * value. On integers the value must be whole.
struct mul_scalar {
  static constexpr std::string_view name = "mul_scalar";
  double value = 1;
  NEAP_WITH_NUMBER_FACETS(mul_scalar)
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x * static_cast<T>(value);
  }
  void gradient(gradient_context& c) const { c.give(0, c.emit(mul_scalar{value}, {c.grad()})); }
};

/// value / x.
struct scalar_over {
  static constexpr std::string_view name = "scalar_over";
  double value = 1;
  static constexpr auto attributes() { return std::array{field<&scalar_over::value>("value")}; }
  NEAP_SCALAR_FACETS(1, true)
  template <class T>
  NEAP_HD T operator()(T x) const {
    return T(value) / x;
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    return -(T(value) / x) / x;
  }
  value_id curve(gradient_context& c, value_id g, value_id x) const;
  void gradient(gradient_context& c) const { detail::scalar_gradient(c, *this); }
};

/// x, or the bound that it is beyond; a NaN stays one. Of integers, bounds are whole numbers or infinite. The slope at a
/// bound is 0, so that the gradient reads the result; but the argument in bf16 and f16 without numbers for the bounds.
struct clamp {
  static constexpr std::string_view name = "clamp";
  static constexpr bool slope_of_result = true, straight = true;
  static constexpr double flops = 2;
  double low = -neap::detail::infinity_of<double>, high = neap::detail::infinity_of<double>;
  static constexpr auto attributes() { return std::array{field<&clamp::low>("low"), field<&clamp::high>("high")}; }
  static constexpr int map_inputs = 1;
  static constexpr bool elementwise = true, integral = true;
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_all_aligned(c); }
  template <class T>
  NEAP_HD T operator()(T x) const {
    return math::min(math::max(x, as<T>(low)), as<T>(high));
  }
  template <class T>
  NEAP_HD T slope(T y) const {
    return T((y > T(low)) & (y < T(high)));
  }
  template <class T>
  NEAP_HD T slope_at(T x) const {
    return slope(x);
  }
  void gradient(gradient_context& c) const;

 private:
  template <class T>
  NEAP_HD static T as(double bound) {
    if constexpr (std::is_integral_v<T>)
      return bound >= 0x1p63 ? INT64_MAX : bound < -0x1p63 ? INT64_MIN : static_cast<T>(bound);
    else return T(bound);
  }
};

namespace detail {
/// x^p: whole p up to 4 in absolute value by multiplication, others by exp(p log |x|), with the sign that an odd whole p
/// gives to negative x. Negative x with a p that is not whole is a NaN; x^0 is 1 for all x.
template <class T>
NEAP_HD NEAP_INLINE T power(T x, T p) {
  if (p == T(0)) return T(1);
  T const m = math::abs(p);
  T y = m == T(1) ? x : m == T(2) ? x * x : m == T(3) ? x * x * x : (x * x) * (x * x);
  if (!(m == T(1) || m == T(2) || m == T(3) || m == T(4))) {
    y = math::exp(m * math::log(math::abs(x)));
    if (x < T(0)) {
      T const half = m * T(0.5);
      bool const whole = m < T(1 << 24) && m == T(static_cast<std::int64_t>(m));
      bool const even = whole && half == T(static_cast<std::int64_t>(half));
      y = even ? y : whole ? -y : (x - x) / (x - x);
    }
  }
  return p < T(0) ? T(1) / y : y;
}
}  // namespace detail

struct pow_scalar_grad {
  static constexpr std::string_view name = "pow_scalar_grad";
  static constexpr double flops = 20;
  double value = 1;
  static constexpr auto attributes() { return std::array{field<&pow_scalar_grad::value>("value")}; }
  NEAP_SCALAR_FACETS(2, true)
  template <class T>
  NEAP_HD T operator()(T g, T x) const {
    return value == 0 ? T(0) : g * T(value) * detail::power(x, T(value - 1));  // 0 also where x^-1 is infinite
  }
  void gradient(gradient_context& c) const;
};
/// x^value; a NaN for negative x if value is not whole.
struct pow_scalar {
  static constexpr std::string_view name = "pow_scalar";
  static constexpr double flops = 18;
  double value = 1;
  static constexpr auto attributes() { return std::array{field<&pow_scalar::value>("value")}; }
  NEAP_SCALAR_FACETS(1, true)
  template <class T>
  NEAP_HD T operator()(T x) const {
    return detail::power(x, T(value));
  }
  void gradient(gradient_context& c) const { c.give(0, c.emit(pow_scalar_grad{value}, {c.grad(), c.in(0)})); }
};

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/unary.ipp>
#endif
