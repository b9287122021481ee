// Comparisons, choice and logical functions, which are operators, too (x > 0, a & ~b): booleans, elementwise, between tensors that broadcast to one shape, or a
// tensor and a number of its element type. A NaN is not equal to anything, itself included, and neither above nor below.
// No gradient goes through a comparison.
#pragma once

#include <neap/ir/operators/binary.hpp>
#include <neap/model/apply.hpp>

namespace neap::inline v0 {

namespace detail {

/// A number as a scalar of x's element type.
inline tensor number_beside(char const* name, tensor const& x, double number, std::source_location at) {
  with_place(at, [&] {
    shape_context(name, {}).require(op::detail::has_number(x.element(), number), number, " is no ", x.element(),
                                    ", but the tensor is ", x.type(), ": cast it first");
  });
  return apply(op::fill{{}, x.element(), number}, {}, at);
}
/// An operator of `first` (or nothing) and two tensors, one of which may be a number.
inline tensor apply_operands(operator_view op, tensor const* first, operand const& a, operand const& b,
                             std::source_location at) {
  char const* const name = op.facets->name.data();  // a literal
  if (!a.is_tensor() && !b.is_tensor())
    throw_error(context_access::place(at), {name, ": one of both must be a tensor"});
  std::vector<tensor> in;
  if (first) in.push_back(*first);
  in.push_back(a.is_tensor() ? a.get() : number_beside(name, b.get(), a.number(), at));
  in.push_back(b.is_tensor() ? b.get() : number_beside(name, a.get(), b.number(), at));
  return apply_view(op, span_of(in), at).front();
}

inline void require_booleans(char const* name, tensor const& x, std::source_location at) {
  with_place(at, [&] {
    shape_context(name, {}).require(x.element() == dtype::boolean, "needs booleans, was given ", x.type(),
                                    ": compare it first");
  });
}
/// An operator of two tensors of booleans, under the name that the user knows.
inline tensor apply_logical(char const* name, operator_view op, tensor const& a, tensor const& b,
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

#define NEAP_COMPARISON_FUNCTION(NAME)                                                                                \
  inline tensor NAME(operand const& a, operand const& b, std::source_location at = std::source_location::current()) { \
    return detail::apply_operands(view_of(op::NAME{}), nullptr, a, b, at);                                            \
  }
/// Where a is above b: greater(x, y), greater(x, 0); and likewise the others.
NEAP_COMPARISON_FUNCTION(greater)
NEAP_COMPARISON_FUNCTION(greater_equal)
NEAP_COMPARISON_FUNCTION(less)
NEAP_COMPARISON_FUNCTION(less_equal)
NEAP_COMPARISON_FUNCTION(equal)
NEAP_COMPARISON_FUNCTION(not_equal)
/// The larger of both; a NaN wins.
NEAP_COMPARISON_FUNCTION(maximum)
/// The smaller of both; a NaN wins.
NEAP_COMPARISON_FUNCTION(minimum)
#undef NEAP_COMPARISON_FUNCTION

namespace detail {
#define NEAP_COMPARED_OPERANDS(NAME) \
  inline tensor NAME##_operands(operand const& a, operand const& b) { return NAME(a, b, place_of(a, b)); }
/// Where an operator between two was written: both know it, and the first may be a number's.
inline std::source_location place_of(operand const& a, operand const& b) { return a.is_tensor() ? a.at() : b.at(); }
NEAP_COMPARED_OPERANDS(greater)
NEAP_COMPARED_OPERANDS(greater_equal)
NEAP_COMPARED_OPERANDS(less)
NEAP_COMPARED_OPERANDS(less_equal)
NEAP_COMPARED_OPERANDS(equal)
NEAP_COMPARED_OPERANDS(not_equal)
#undef NEAP_COMPARED_OPERANDS
}  // namespace detail

/// a where condition (bool), else b: where(greater(x, 0), x, 0).
inline tensor where(tensor const& condition, operand const& a, operand const& b,
                    std::source_location at = std::source_location::current()) {
  return detail::apply_operands(view_of(op::where{}), &condition, a, b, at);
}

/// x, or `value` where the mask (bool, which broadcasts to x's shape) is true: masked_fill(scores, padding, -1e9).
inline tensor masked_fill(tensor const& x, tensor const& mask, double value,
                          std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  detail::require_booleans("masked_fill", mask, at);
  detail::require_broadcast(mask, x, "masked_fill", at);
  tensor y = where(mask, value, x);
  if (y.shape() != x.shape())
    throw_error(context_access::place(at),
                {"masked_fill: a mask of shape ", mask.shape(), " does not broadcast to ", x.type()});
  return y;
}

// Logical functions take booleans only: greater(x, 0) or not_equal(x, 0) makes them of numbers.

inline tensor logical_and(tensor const& a, tensor const& b, std::source_location at = std::source_location::current()) {
  return detail::apply_logical("logical_and", view_of(op::minimum{}), a, b, at);
}
inline tensor logical_or(tensor const& a, tensor const& b, std::source_location at = std::source_location::current()) {
  return detail::apply_logical("logical_or", view_of(op::maximum{}), a, b, at);
}
inline tensor logical_xor(tensor const& a, tensor const& b, std::source_location at = std::source_location::current()) {
  return detail::apply_logical("logical_xor", view_of(op::not_equal{}), a, b, at);
}
inline tensor logical_not(tensor const& x, std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  detail::require_booleans("logical_not", x, at);
  return equal(x, 0);
}

namespace detail {
/// An operand of & and the like as a tensor: true and false are numbers, too.
inline tensor boolean_operand(char const* name, operand const& a) {
  if (a.is_tensor()) return a.get();
  if (a.number() != 0 && a.number() != 1)
    throw_error(context_access::place(a.at()),
                {name, ": needs booleans, was given ", a.number(), ": compare it first"});
  return apply(op::fill{{}, dtype::boolean, a.number()}, {}, a.at());
}
inline tensor and_operands(operand const& a, operand const& b) {
  return logical_and(boolean_operand("logical_and", a), boolean_operand("logical_and", b), a.at());
}
inline tensor or_operands(operand const& a, operand const& b) {
  return logical_or(boolean_operand("logical_or", a), boolean_operand("logical_or", b), a.at());
}
inline tensor xor_operands(operand const& a, operand const& b) {
  return logical_xor(boolean_operand("logical_xor", a), boolean_operand("logical_xor", b), a.at());
}
inline tensor not_operand(operand const& a) { return logical_not(a.get(), a.at()); }
}  // namespace detail

}  // namespace neap::inline v0
