// The bodies of <neap/ir/operators/unary.hpp>.
#pragma once

#include <neap/ir/operators/unary.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC void infer_grad_and_result(shape_context& c) {
  c.require_arity(2, 2);
  require_floating(c, 0);
  require_same_type(c, 0, 1);
  for (int j = 0; j < 2; ++j) c.fresh(c.in(0));
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC value_id log::curve(gradient_context& c, value_id g, value_id x) const {
  return c.emit(neg{}, {c.emit(grad_of<log>{}, {c.emit(grad_of<log>{}, {g, x}), x})});
}

NEAP_FUNC value_id sqrt::curve(gradient_context& c, value_id g, value_id y) const {
  return detail::affine(c, c.emit(grad_of<sqrt>{}, {c.emit(grad_of<sqrt>{}, {g, y}), y}), -2);
}

NEAP_FUNC value_id rsqrt::curve(gradient_context& c, value_id g, value_id y) const {
  return detail::affine(c, detail::product(c, g, detail::product(c, y, y)), -1.5);
}

NEAP_FUNC value_id reciprocal::curve(gradient_context& c, value_id g, value_id y) const {
  return detail::affine(c, detail::product(c, g, y), -2);
}

NEAP_FUNC value_id tanh::curve(gradient_context& c, value_id g, value_id y) const {
  return detail::affine(c, detail::product(c, g, y), -2);
}

NEAP_FUNC value_id sigmoid::curve(gradient_context& c, value_id g, value_id y) const {
  return detail::product(c, g, detail::affine(c, y, -2, 1));
}

NEAP_FUNC value_id silu::curve(gradient_context& c, value_id g,
                               value_id x) const {  // s (1 - s) (2 + x (1 - 2 s)), s = sigmoid(x)
  value_id const s = c.emit(sigmoid{}, {x});
  value_id const bend = detail::affine(c, detail::product(c, x, detail::affine(c, s, -2, 1)), 1, 2);
  return detail::product(c, c.emit(grad_of<sigmoid>{}, {g, s}), bend);
}

NEAP_FUNC value_id erf::curve(gradient_context& c, value_id g, value_id x) const {
  return detail::affine(c, detail::product(c, c.emit(grad_of<erf>{}, {g, x}), x), -2);
}

NEAP_FUNC value_id softplus::curve(gradient_context& c, value_id g, value_id x) const {
  return c.emit(grad_of<sigmoid>{}, {g, c.emit(sigmoid{}, {x})});
}

NEAP_FUNC void elu::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_floating(c, 0);
  c.require(alpha >= 0, "alpha must not be negative, got ", alpha);
  c.fresh(c.in(0));
}

NEAP_FUNC value_id elu::curve(gradient_context& c, value_id g, value_id y) const {
  return c.emit(sub{}, {g, c.emit(grad_of<relu>{}, {g, y})});
}

NEAP_FUNC value_id scalar_over::curve(gradient_context& c, value_id g, value_id x) const {  // 2 value / x^3
  value_id const slope = c.emit(grad_of<scalar_over>(*this), {g, x});
  return detail::affine(c, detail::product(c, slope, c.emit(reciprocal{}, {x})), -2);
}

NEAP_FUNC value_id sin::curve(gradient_context& c, value_id g, value_id x) const {
  return c.emit(neg{}, {detail::product(c, g, c.emit(sin{}, {x}))});
}

NEAP_FUNC value_id cos::curve(gradient_context& c, value_id g, value_id x) const {
  return c.emit(neg{}, {detail::product(c, g, c.emit(cos{}, {x}))});
}

NEAP_FUNC void leaky_relu_grad::gradient(gradient_context& c) const {
  value_id const h = c.grad();
  if (c.wants(0)) c.give(0, reduced_to(c, c.emit(*this, {h, c.in(1)}), c.type(c.in(0)).dims));
}

NEAP_FUNC void leaky_relu::gradient(gradient_context& c) const {
  c.give(0, c.emit(leaky_relu_grad{slope}, {c.grad(), slope >= 0 ? c.out(0) : c.in(0)}));
}

}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC void infer_with_number(shape_context& c, double value) {
  c.require_arity(1, 1);
  auto const& x = c.in(0);
  c.require(x.element != dtype::boolean, "needs numbers, got ", x, ": cast it first");
  c.require(is_floating(x.element) ||
                (value >= -9e18 && value <= 9e18 && value == static_cast<double>(static_cast<std::int64_t>(value))),
            value, " is no integer, but the tensor is ", x, ": cast it to a floating type first");
  c.fresh(x);
}

NEAP_FUNC value_id affine(gradient_context& c, value_id v, double scale, double shift) {
  if (scale != 1) v = c.emit(mul_scalar{scale}, {v});
  return shift == 0 ? v : c.emit(add_scalar{shift}, {v});
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void gelu_grad::gradient(gradient_context& c) const {
  using detail::affine, detail::difference, detail::product;
  value_id const h = c.grad(), x = c.in(1);
  if (c.wants(0)) c.give(0, reduced_to(c, c.emit(*this, {h, x}), c.type(c.in(0)).dims));
  if (!c.wants(1)) return;
  value_id const xx = c.emit(square{}, {x});
  value_id curve{};
  if (tanh_form) {  // (1 - t^2) (u' + x u'' / 2 - x t u'^2), where t = tanh(u), u = k (x + a x^3)
    double const k = 0.79788456080286535588, a = 0.044715;
    value_id const t = c.emit(tanh{}, {product(c, x, affine(c, xx, k * a, k))});
    value_id const slope = affine(c, xx, 3 * k * a, k);
    value_id const bent = product(c, product(c, x, t), c.emit(square{}, {slope}));
    curve = c.emit(grad_of<tanh>{}, {difference(c, affine(c, xx, 6 * k * a, k), bent), t});
  } else {  // (2 - x^2) e^(-x^2 / 2) / sqrt(2 pi)
    value_id const bell = affine(c, c.emit(exp{}, {affine(c, xx, -0.5)}), 0.39894228040143267794);
    curve = product(c, affine(c, xx, -1, 2), bell);
  }
  c.give(1, reduced_to(c, product(c, product(c, h, c.in(0)), curve), c.type(x).dims));
}

}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void clamp::infer(shape_context& c) const {
  c.require_arity(1, 1);
  auto const& x = c.in(0);
  c.require(low <= high, "the bounds are not in order, ", low, " and ", high);
  c.require(x.element != dtype::boolean, "needs numbers, got ", x, ": cast it first");
  auto const require_bound = [&](double bound) {
    c.require(neap::detail::has_number(x.element, bound), "the bound ", bound, " is no ", x.element,
              ", but the tensor is ", x, ": cast it first");
  };
  if (low != -neap::detail::infinity_of<double>) require_bound(low);
  if (high != neap::detail::infinity_of<double>) require_bound(high);
  c.fresh(x);
}

NEAP_FUNC void clamp::gradient(gradient_context& c) const {
  auto const element = c.type(c.in(0)).element;
  auto const is_exact = [&](double bound) {
    auto const b = static_cast<float>(bound);
    return element == dtype::bf16 ? float(bf16(b)) == b : element != dtype::f16 || float(f16(b)) == b;
  };
  if (is_exact(low) && is_exact(high)) c.give(0, c.emit(grad_of<clamp>(*this), {c.grad(), c.out(0)}));
  else c.give(0, c.emit(grad_at<clamp>(*this), {c.grad(), c.in(0)}));  // a bound is rounded into the interval or out
}

NEAP_FUNC void pow_scalar_grad::gradient(gradient_context& c) const {
  value_id const h = c.grad();
  if (c.wants(0)) c.give(0, reduced_to(c, c.emit(*this, {h, c.in(1)}), c.type(c.in(0)).dims));
  if (!c.wants(1) || value == 0 || value == 1) return;
  value_id const curve = c.emit(pow_scalar_grad{value - 1}, {detail::product(c, h, c.in(0)), c.in(1)});
  c.give(1, reduced_to(c, detail::affine(c, curve, value), c.type(c.in(1)).dims));
}

}}}  // namespace neap::v0::op
