// The bodies of <neap/model/functions/elementwise.hpp>.
#pragma once

#include <neap/model/functions/elementwise.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {
namespace detail {

NEAP_FUNC tensor add_operands(operand const& a, operand const& b) {
  if (!a.is_tensor()) return add_operands(b, a);
  if (!b.is_tensor()) return apply(op::add_scalar{b.number()}, {a.get()}, a.at());
  return apply(op::add{}, {a.get(), b.get()}, a.at());
}

NEAP_FUNC tensor multiply_operands(operand const& a, operand const& b) {
  if (!a.is_tensor()) return multiply_operands(b, a);
  if (!b.is_tensor()) return apply(op::mul_scalar{b.number()}, {a.get()}, a.at());
  return apply(op::mul{}, {a.get(), b.get()}, a.at());
}

}  // namespace detail
}  // namespace neap::inline v0
