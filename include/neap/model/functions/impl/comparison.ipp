// The bodies of <neap/model/functions/comparison.hpp>.
#pragma once

#include <neap/model/functions/comparison.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor number_beside(char const* name, tensor const& x, double number, std::source_location at) {
  if (x.is_empty()) no_input(name, 0, at);
  if (!has_number(x.element(), number))
    throw_error(context_access::place(at),
                {name, ": ", number, " is no ", x.element(), ", but the tensor is ", x.type(), ": cast it first"});
  return apply(op::fill{{}, x.element(), number}, {}, at);
}

NEAP_FUNC tensor apply_operands(operator_view op, tensor const* first, operand const& a, operand const& b,
                                std::source_location at) {
  char const* const function = context_access::function();
  char const* const name = function ? function : op.facets->name.data();  // literals
  if (!a.is_tensor() && !b.is_tensor())
    throw_error(context_access::place(at), {name, ": one of both must be a tensor"});
  std::vector<tensor> in;
  if (first) in.push_back(*first);
  in.push_back(a.is_tensor() ? a.get() : number_beside(name, b.get(), a.number(), at));
  in.push_back(b.is_tensor() ? b.get() : number_beside(name, a.get(), b.number(), at));
  return apply_view(op, span_of(in), at).front();
}

NEAP_FUNC void require_booleans(char const* name, tensor const& x, std::source_location at) {
  if (x.is_empty()) no_input(name, 0, at);
  if (x.element() != dtype::boolean)
    throw_error(context_access::place(at), {name, ": needs booleans, got ", x.type(), ": compare it first"});
}

NEAP_FUNC tensor apply_logical(char const* name, operator_view op, tensor const& a, tensor const& b,
                               std::source_location at) {
  tensor const both[] = {a, b};
  for (auto const& x : both) require_booleans(name, x, at);
  with_place(at, [&] {
    tensor_layout const layouts[] = {a.layout(), b.layout()};
    shape_context c(name, layouts);
    op::detail::broadcast(c);
  });
  return apply_view(op, both, at).front();
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor where(tensor const& condition, operand const& a, operand const& b, std::source_location at) {
  return detail::apply_operands(view_of(op::where{}), &condition, a, b, at);
}

NEAP_FUNC tensor masked_fill(tensor const& x, tensor const& mask, double value, std::source_location at) {
  place_scope const here(at, "masked_fill");
  detail::require_booleans("masked_fill", mask, at);
  detail::require_broadcast(mask, x, "masked_fill", at);
  tensor y = where(mask, value, x);
  if (y.shape() != x.shape())
    throw_error(context_access::place(at),
                {"masked_fill: a mask of shape ", mask.shape(), " does not broadcast to ", x.type()});
  return y;
}

NEAP_FUNC tensor logical_and(tensor const& a, tensor const& b, std::source_location at) {
  return detail::apply_logical("logical_and", view_of(op::minimum{}), a, b, at);
}

NEAP_FUNC tensor logical_or(tensor const& a, tensor const& b, std::source_location at) {
  return detail::apply_logical("logical_or", view_of(op::maximum{}), a, b, at);
}

NEAP_FUNC tensor logical_xor(tensor const& a, tensor const& b, std::source_location at) {
  return detail::apply_logical("logical_xor", view_of(op::not_equal{}), a, b, at);
}

NEAP_FUNC tensor logical_not(tensor const& x, std::source_location at) {
  place_scope const here(at, "logical_not");
  detail::require_booleans("logical_not", x, at);
  return equal(x, 0);
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor boolean_operand(char const* name, operand const& a) {
  if (a.is_tensor()) return a.get();
  if (a.number() != 0 && a.number() != 1)
    throw_error(context_access::place(a.at()), {name, ": needs booleans, got ", a.number(), ": compare it first"});
  return apply(op::fill{{}, dtype::boolean, a.number()}, {}, a.at());
}

NEAP_FUNC tensor and_operands(operand const& a, operand const& b) {
  return logical_and(boolean_operand("logical_and", a), boolean_operand("logical_and", b), a.at());
}

NEAP_FUNC tensor or_operands(operand const& a, operand const& b) {
  return logical_or(boolean_operand("logical_or", a), boolean_operand("logical_or", b), a.at());
}

NEAP_FUNC tensor xor_operands(operand const& a, operand const& b) {
  return logical_xor(boolean_operand("logical_xor", a), boolean_operand("logical_xor", b), a.at());
}

}  // namespace detail
}}  // namespace neap::v0
