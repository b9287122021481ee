// The bodies of <neap/ir/operators/binary.hpp>.
#pragma once

#include <neap/ir/operators/binary.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void div::gradient(gradient_context& c) const {
  auto const element = c.type(c.in(0)).element, full = computed_in(element);
  // dL/da = g / b, dL/db = -(g / b) (a / b); of bf16 and f16 without rounding in between.
  bool const widens = element != full && c.wants(1);
  auto const wide = [&](value_id v) { return widens ? detail::in_element(c, v, full) : v; };
  value_id const b = wide(c.in(1)), over_b = c.emit(div{}, {wide(c.grad()), b});
  auto const give = [&](int i, value_id v) { c.give(i, detail::in_element(c, v, element)); };
  if (c.wants(0)) give(0, reduced_to(c, over_b, c.type(c.in(0)).dims));
  if (c.wants(1)) {
    value_id const y = widens ? c.emit(div{}, {wide(c.in(0)), b}) : c.out(0);
    give(1, c.emit(neg{}, {reduced_to(c, c.emit(mul{}, {over_b, y}), c.type(c.in(1)).dims)}));
  }
}

}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC void comparison::infer(shape_context& c) const {
  c.require_arity(2, 2);
  require_same_element(c, 0, 1);
  c.fresh(tensor_type{dtype::boolean, broadcast(c)});
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void where::gradient(gradient_context& c) const {
  auto const element = c.type(c.grad()).element;
  value_id const zero = c.emit(fill{{}, element, 0}, {});
  if (c.wants(1)) c.give(1, reduced_to(c, c.emit(where{}, {c.in(0), c.grad(), zero}), c.type(c.in(1)).dims));
  if (c.wants(2)) c.give(2, reduced_to(c, c.emit(where{}, {c.in(0), zero, c.grad()}), c.type(c.in(2)).dims));
}

NEAP_FUNC void pow_op::gradient(gradient_context& c) const {
  auto const element = c.type(c.in(0)).element, full = computed_in(element);
  auto const wide = [&](value_id v) { return detail::in_element(c, v, full); };  // rounds once, at the end
  value_id const g = wide(c.grad()), a = wide(c.in(0)), b = wide(c.in(1));
  value_id const y = element == full ? c.out(0) : c.emit(pow_op{}, {a, b});
  auto const give = [&](int i, value_id slope) {
    value_id const d = reduced_to(c, c.emit(mul{}, {slope, g}), c.type(c.in(i)).dims);
    c.give(i, detail::in_element(c, d, element));
  };
  if (c.wants(0)) give(0, c.emit(mul{}, {c.emit(div{}, {y, a}), b}));  // g * b * y / a
  if (c.wants(1)) give(1, c.emit(mul{}, {y, c.emit(log{}, {a})}));     // g * y * log a
}

}}}  // namespace neap::v0::op
