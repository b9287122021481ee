// The bodies of <neap/model/functions/elementwise.hpp>.
#pragma once

#include <neap/model/functions/elementwise.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor add_operands(operand const& a, operand const& b) {
  function_scope const named("add");
  if (!a.is_tensor()) return add_operands(b, a);
  if (!b.is_tensor()) return apply(op::add_scalar{b.number()}, {a.get()}, a.at());
  return apply(op::add{}, {a.get(), b.get()}, a.at());
}

NEAP_FUNC tensor multiply_operands(operand const& a, operand const& b) {
  function_scope const named("mul");
  if (!a.is_tensor()) return multiply_operands(b, a);
  if (!b.is_tensor()) return apply(op::mul_scalar{b.number()}, {a.get()}, a.at());
  return apply(op::mul{}, {a.get(), b.get()}, a.at());
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor subtract_operands(operand const& a, operand const& b) {
  function_scope const named("sub");
  if (!b.is_tensor()) return apply(op::add_scalar{-b.number()}, {a.get()}, a.at());
  if (!a.is_tensor()) return apply(op::add_scalar{a.number()}, {apply(op::neg{}, {b.get()}, b.at())}, b.at());
  return apply(op::sub{}, {a.get(), b.get()}, a.at());
}

NEAP_FUNC tensor negate_operand(operand const& a) { return apply(op::neg{}, {a.get()}, a.at()); }

/// x / s as x * (1 / s), in steps by powers of two where 1 / s is no normal number of what x is computed in.
NEAP_FUNC tensor divided_by_number(operand const& x, double s) {
  tensor const& whole = x.get();
  dtype const element = whole.is_empty() ? dtype::f32 : whole.element(), computed = computed_in(element);
  int const limit = computed == dtype::f64 ? 1000 : 120;
  int exponent = 0;
  double const fraction = std::frexp(s, &exponent);
  if (!is_floating(element) || !std::isfinite(s) || s == 0 || std::abs(exponent) <= limit)
    return apply(op::mul_scalar{1 / s}, {whole}, x.at());
  tensor y = element == computed ? whole : apply(op::cast{computed}, {whole}, x.at());
  for (exponent = -exponent; std::abs(exponent) > limit;) {
    int const step = exponent > 0 ? limit : -limit;
    y = apply(op::mul_scalar{std::ldexp(1, step)}, {y}, x.at());
    exponent -= step;
  }
  y = apply(op::mul_scalar{std::ldexp(1 / fraction, exponent)}, {y}, x.at());
  return element == computed ? y : apply(op::cast{element}, {y}, x.at());
}

NEAP_FUNC tensor divide_operands(operand const& a, operand const& b) {
  function_scope const named("div");
  if (!b.is_tensor() && !a.get().is_empty() && !is_floating(a.get().element()) && a.get().element() != dtype::boolean)
    if (!has_number(dtype::i64, 1 / b.number()))  // x / s is x * (1 / s)
      throw_error(context_access::place(a.at()), {"div: by ", b.number(), ", which ", a.get().type(),
                                                  " has no quotients for: cast it to a floating type first"});
  if (!b.is_tensor()) return divided_by_number(a, b.number());
  if (!a.is_tensor()) return apply(op::scalar_over{a.number()}, {b.get()}, b.at());
  return apply(op::div{}, {a.get(), b.get()}, a.at());
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

#define NEAP_DEFINED(NAME) \
  NEAP_FUNC tensor NAME(tensor const& x, std::source_location at) { return apply(op::NAME{}, {x}, at); }
NEAP_FUNCTIONS_OF_ONE(NEAP_DEFINED)
#undef NEAP_DEFINED
#undef NEAP_FUNCTIONS_OF_ONE

NEAP_FUNC tensor abs(tensor const& x, std::source_location at) {
  if (x.is_empty() || is_floating(x.element()) || x.element() == dtype::boolean) return apply(op::abs{}, {x}, at);
  place_scope const here(at, "abs");
  return x.element() == dtype::u8 ? x : maximum(x, neg(x));
}

NEAP_FUNC tensor square(tensor const& x, std::source_location at) {
  if (x.is_empty() || is_floating(x.element()) || x.element() == dtype::boolean) return apply(op::square{}, {x}, at);
  place_scope const here(at, "square");
  return mul(x, x);
}

namespace detail {
/// The quotient and the remainder of i64.
NEAP_FUNC std::pair<tensor, tensor> divided(char const* who, operand const& a, operand const& b,
                                            std::source_location at) {
  place_scope const here(at, who);
  auto const& typed = a.is_tensor() ? a.get() : b.get();
  for (auto const* x : {&a, &b})
    if (x->is_tensor() &&
        (x->get().is_empty() || is_floating(x->get().element()) || x->get().element() == dtype::boolean))
      throw_error(context_access::place(at),
                  {who, ": takes whole numbers, got ",
                   x->get().is_empty() ? std::string("an empty tensor") : to_string(x->get().type())});
  auto const wide = [&](operand const& x) {
    return cast(x.is_tensor() ? x.get() : number_beside(who, typed, x.number(), at), dtype::i64);
  };
  if (a.is_tensor() && b.is_tensor() && a.get().element() != b.get().element())
    throw_error(context_access::place(at),
                {who, ": the element types differ: ", a.get().type(), " and ", b.get().type()});
  tensor const n = wide(a), d = wide(b);
  tensor const by = where(equal(d, 0), 1, d);
  // A quotient of doubles is off by 2^-52 of itself: what it leaves is small, and divided once more.
  constexpr double most = 9223372036854774784.;  // the largest double that is an i64
  auto const estimate = [&](tensor const& x) {
    return cast(clamp(floor(cast(x, dtype::f64) / cast(by, dtype::f64)), -most, most), dtype::i64);
  };
  tensor q = estimate(n);
  q = q + estimate(n - q * by);
  tensor r = n - q * by;
  tensor const is_above =
      logical_and(not_equal(r, 0), logical_xor(less(r, 0), less(by, 0)));  // than it may be: q is too large
  q = q - cast(is_above, dtype::i64), r = r + where(is_above, by, 0);
  tensor const is_below = logical_not(less(abs(r), maximum(abs(by), 1)));  // a whole divisor is left
  q = q + cast(is_below, dtype::i64), r = r - where(is_below, by, 0);
  tensor const none = equal(d, 0);
  return {cast(where(none, 0, q), typed.element()), cast(where(none, n, r), typed.element())};
}
}  // namespace detail

NEAP_FUNC tensor quotient(operand const& a, operand const& b, std::source_location at) {
  return detail::divided("quotient", a, b, at).first;
}

NEAP_FUNC tensor remainder(operand const& a, operand const& b, std::source_location at) {
  return detail::divided("remainder", a, b, at).second;
}

NEAP_FUNC tensor isnan(tensor const& x, std::source_location at) {
  place_scope const here(at, "isnan");
  return not_equal(x, x);
}

NEAP_FUNC tensor isinf(tensor const& x, std::source_location at) {
  place_scope const here(at, "isinf");
  return logical_and(equal(x, x), logical_not(isfinite(x)));
}

NEAP_FUNC tensor isfinite(tensor const& x, std::source_location at) {
  place_scope const here(at, "isfinite");
  return equal(x - x, x - x);
}

NEAP_FUNC tensor ceil(tensor const& x, std::source_location at) {
  place_scope const here(at, "ceil");
  return neg(floor(neg(x)));
}

NEAP_FUNC tensor clamp(tensor const& x, op::clamp how, std::source_location at) { return apply(how, {x}, at); }

NEAP_FUNC tensor clamp(tensor const& x, double low, double high, std::source_location at) {
  return apply(op::clamp{low, high}, {x}, at);
}

NEAP_FUNC tensor gelu(tensor const& x, bool tanh_form, std::source_location at) {
  return apply(op::gelu{tanh_form}, {x}, at);
}

NEAP_FUNC tensor gelu(tensor const& x, std::source_location at) { return gelu(x, false, at); }

NEAP_FUNC tensor leaky_relu(tensor const& x, double slope, std::source_location at) {
  return apply(op::leaky_relu{slope}, {x}, at);
}

NEAP_FUNC tensor elu(tensor const& x, double alpha, std::source_location at) {
  return apply(op::elu{.alpha = alpha}, {x}, at);
}

NEAP_FUNC tensor pow(tensor const& x, double p, std::source_location at) {
  function_scope const named("pow");
  return apply(op::pow_scalar{p}, {x}, at);
}

NEAP_FUNC tensor add(tensor const& a, tensor const& b, std::source_location at) { return apply(op::add{}, {a, b}, at); }

NEAP_FUNC tensor mul(tensor const& a, tensor const& b, std::source_location at) { return apply(op::mul{}, {a, b}, at); }

}}  // namespace neap::v0
