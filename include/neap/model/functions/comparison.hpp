// Comparisons, choice and logical functions, which are operators, too (x > 0, a & ~b): booleans, elementwise, between tensors that broadcast to one shape, or a
// tensor and a number of its element type. A NaN is not equal to anything, itself included, and neither above nor below.
// No gradient goes through a comparison.
#pragma once

#include <neap/ir/operators/binary.hpp>
#include <neap/model/apply.hpp>

namespace neap { inline namespace v0 {

namespace detail {

/// A number as a scalar of x's element type.
tensor number_beside(char const* name, tensor const& x, double number, std::source_location at);
/// An operator of `first` (or nothing) and two tensors, one of which may be a number.
tensor apply_operands(operator_view op, tensor const* first, operand const& a, operand const& b,
                      std::source_location at);

void require_booleans(char const* name, tensor const& x, std::source_location at);
/// An operator of two tensors of booleans, under the name that the user knows.
tensor apply_logical(char const* name, operator_view op, tensor const& a, tensor const& b, std::source_location at);

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
tensor where(tensor const& condition, operand const& a, operand const& b,
             std::source_location at = std::source_location::current());

/// x, or `value` where the mask (bool, which broadcasts to x's shape) is true: masked_fill(scores, padding, -1e9).
tensor masked_fill(tensor const& x, tensor const& mask, double value,
                   std::source_location at = std::source_location::current());

// Logical functions take booleans only: greater(x, 0) or not_equal(x, 0) makes them of numbers.

tensor logical_and(tensor const& a, tensor const& b, std::source_location at = std::source_location::current());
tensor logical_or(tensor const& a, tensor const& b, std::source_location at = std::source_location::current());
tensor logical_xor(tensor const& a, tensor const& b, std::source_location at = std::source_location::current());
tensor logical_not(tensor const& x, std::source_location at = std::source_location::current());

namespace detail {
/// An operand of & and the like as a tensor: true and false are numbers, too.
tensor boolean_operand(char const* name, operand const& a);
tensor and_operands(operand const& a, operand const& b);
tensor or_operands(operand const& a, operand const& b);
tensor xor_operands(operand const& a, operand const& b);
inline tensor not_operand(operand const& a) { return logical_not(a.get(), a.at()); }
}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/comparison.ipp>
#endif
