// The bodies of <neap/model/functions/reduction.hpp>.
#pragma once

#include <neap/model/functions/reduction.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC tensor sum(tensor const& x, axis_list const& axes, bool keepdim, std::source_location at) {
  return apply(op::sum{axes, keepdim}, {x}, at);
}

NEAP_FUNC tensor mean(tensor const& x, axis_list const& axes, bool keepdim, std::source_location at) {
  return apply(op::mean{axes, keepdim}, {x}, at);
}

NEAP_FUNC tensor max(tensor const& x, axis_list const& axes, bool keepdim, std::source_location at) {
  function_scope const named("max");
  return apply(op::max_reduce{axes, keepdim}, {x}, at);
}

NEAP_FUNC tensor min(tensor const& x, axis_list const& axes, bool keepdim, std::source_location at) {
  function_scope const named("min");
  return apply(op::min_reduce{axes, keepdim}, {x}, at);
}

NEAP_FUNC tensor any(tensor const& x, axis_list const& axes, bool keepdim, std::source_location at) {
  function_scope const named("any");
  detail::require_booleans("any", x, at);
  return apply(op::max_reduce{axes, keepdim}, {x}, at);
}

NEAP_FUNC tensor all(tensor const& x, axis_list const& axes, bool keepdim, std::source_location at) {
  function_scope const named("all");
  detail::require_booleans("all", x, at);
  return apply(op::min_reduce{axes, keepdim}, {x}, at);
}

NEAP_FUNC tensor cumsum(tensor const& x, std::int64_t axis, bool reverse, std::source_location at) {
  return apply(op::cumsum{axis, reverse}, {x}, at);
}

NEAP_FUNC tensor var(tensor const& given, axis_list const& axes, variance_form how, std::source_location at) {
  place_scope const here(at, "var");
  tensor const x = detail::in_full(given);
  if (is_low(x.element())) return cast(var(cast(x, dtype::f32), axes, how), x.element());
  double n = axes.empty() ? static_cast<double>(x.count()) : 1;
  for (auto k : axes) n *= static_cast<double>(x.size(detail::axis_of(x, k, "var", at)));
  tensor const squares = sum(square(x - mean(x, axes, true)), axes, how.keepdim);
  return squares * (1 / std::max(0., n - static_cast<double>(how.correction)));
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void require_axes(tensor const& x, axis_list const& axes, char const* who, std::source_location at) {
  for (auto k : axes) axis_of(x, k, who, at);
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor logsumexp(tensor const& given, axis_list const& axes, bool keepdim, std::source_location at) {
  place_scope const here(at, "logsumexp");
  tensor const x = detail::in_full(given);
  if (is_low(x.element())) return cast(logsumexp(cast(x, dtype::f32), axes, keepdim), x.element());
  detail::require_axes(x, axes, "logsumexp", at);
  tensor top;  // subtracted and added: a constant for the gradient
  if (x.count() > 0) {
    no_gradient const fixed;
    top = max(x, axes, true);
    top = where(less(abs(top), std::numeric_limits<double>::infinity()), top, 0);
  }
  tensor const sums = log(sum(exp(top.is_empty() ? x : x - top), axes, keepdim));
  return top.is_empty() ? sums : sums + reshape(top, sums.shape());
}

NEAP_FUNC tensor norm(tensor const& given, double p, axis_list const& axes, bool keepdim, std::source_location at) {
  place_scope const here(at, "norm");
  tensor const x = detail::in_full(given);
  if (is_low(x.element())) return cast(norm(cast(x, dtype::f32), p, axes, keepdim), x.element());
  if (!is_floating(x.element()))
    throw_error(context_access::place(at), {"norm: needs a floating type, got ", x.type(), ": cast it first"});
  if (p != p) throw_error(context_access::place(at), {"norm: the exponent must be a number"});
  detail::require_axes(x, axes, "norm", at);
  auto const infinite = std::numeric_limits<double>::infinity();
  if (p == infinite) return max(abs(x), axes, keepdim);
  if (p == -infinite) return min(abs(x), axes, keepdim);
  if (p == 0) return sum(cast(not_equal(x, 0), x.element()), axes, keepdim);
  if (p == 1) return sum(abs(x), axes, keepdim);
  // Roots and powers never see a 0, where their slopes may be infinite.
  if (p == 2) {
    tensor const squares = sum(square(x), axes, keepdim), differs = not_equal(squares, 0);
    return where(differs, sqrt(where(differs, squares, 1)), squares);
  }
  tensor const size = abs(x), filled = not_equal(x, 0);
  tensor const powers = p > 0 ? where(filled, pow(where(filled, size, 1), p), size)
                              : where(filled, pow(where(filled, size, 1), p), infinite);
  tensor const total = sum(powers, axes, keepdim);
  if (p < 0) {
    tensor const finite = less(total, infinite);
    return where(finite, pow(where(finite, total, 1), 1 / p), 0);
  }
  tensor const differs = not_equal(total, 0);
  return where(differs, pow(where(differs, total, 1), 1 / p), total);
}

NEAP_FUNC tensor prod(tensor const& given, axis_list const& axes, bool keepdim, std::source_location at) {
  place_scope const here(at, "prod");
  tensor const x = detail::in_full(given);
  if (is_low(x.element())) return cast(prod(cast(x, dtype::f32), axes, keepdim), x.element());
  tensor y = is_floating(x.element()) ? x : cast(x, dtype::i64);
  std::uint32_t seen = 0;
  for (auto axis : axes) {
    auto const bit = 1u << detail::axis_of(x, axis, "prod", at);
    if (seen & bit) throw_error(context_access::place(at), {"prod: axis ", axis, " is named twice in ", axes});
    seen |= bit;
  }
  shape dims;
  for (int k = 0; k < x.rank(); ++k) {
    bool const reduced = axes.rank() == 0 || (seen >> k & 1);
    if (!reduced || keepdim) dims.push_back(reduced ? 1 : x.size(k));
    if (!reduced) continue;
    if (y.size(k) == 0) {
      shape ones = y.shape();
      ones[k] = 1;
      y = apply(op::fill{ones, y.element(), 1}, {});
    }
    tensor rest;  // of odd halves
    while (y.size(k) > 1) {
      auto const half = y.size(k) / 2;
      if (y.size(k) % 2) {
        tensor const last = slice(y, k, 2 * half, 2 * half + 1);
        rest = rest.is_empty() ? last : rest * last;
      }
      y = slice(y, k, 0, half) * slice(y, k, half, 2 * half);
    }
    if (!rest.is_empty()) y = y * rest;
  }
  return reshape(y, dims);
}

NEAP_FUNC tensor cosine_similarity(tensor const& given_a, tensor const& given_b, std::int64_t axis, double epsilon,
                                   std::source_location at) {
  place_scope const here(at, "cosine_similarity");
  tensor const a = detail::in_full(given_a), b = detail::in_full(given_b);
  if (is_low(a.element()) && a.element() == b.element())
    return cast(cosine_similarity(cast(a, dtype::f32), cast(b, dtype::f32), axis, epsilon), a.element());
  detail::require_broadcast(a, b, "cosine_similarity", at);
  tensor const product = a * b;
  auto const k = std::int64_t{detail::axis_of(product, axis, "cosine_similarity", at)};
  auto const length = [&](tensor const& x) {
    return sqrt(maximum(sum(square(broadcast_to(x, product.shape())), {k}), epsilon * epsilon));
  };
  return sum(product, {k}) / (length(a) * length(b));
}

NEAP_FUNC tensor stddev(tensor const& given, axis_list const& axes, variance_form how, std::source_location at) {
  place_scope const here(at, "stddev");
  tensor const x = detail::in_full(given);
  if (is_low(x.element())) return cast(stddev(cast(x, dtype::f32), axes, how), x.element());
  detail::require_axes(x, axes, "stddev", at);
  tensor const v = var(x, axes, how), differs = not_equal(v, 0);
  return where(differs, sqrt(where(differs, v, 1)), v);  // sqrt never sees a 0, where its slope is infinite
}

}}  // namespace neap::v0
