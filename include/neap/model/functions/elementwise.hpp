// Functions that work on each element: arithmetic between tensors that broadcast to one shape (aligned from the last
// axis, extents of 1 stretch), with numbers, and functions of one tensor. Each throws neap::error with the user's place
// if shapes or element types do not fit. A tensor of integers takes whole numbers only, and a tensor divided by a number s
// is multiplied by 1 / s rounded: x / s may differ from the quotient in the last bit (that of two tensors does not).
// Where 1 / s is no normal number, several such products make the quotient.
#pragma once

#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/model/functions/comparison.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap { inline namespace v0 {

namespace detail {

tensor add_operands(operand const& a, operand const& b);
tensor subtract_operands(operand const& a, operand const& b);
tensor multiply_operands(operand const& a, operand const& b);
tensor divide_operands(operand const& a, operand const& b);

tensor negate_operand(operand const& a);

}  // namespace detail

/// Functions of one tensor: exp(x).
// clang-format off
#define NEAP_FUNCTIONS_OF_ONE(F)                                                                                       \
  F(neg) F(exp) F(log) F(sqrt) F(rsqrt) F(reciprocal) F(tanh) F(sigmoid) F(relu) F(silu) F(erf) F(softplus) F(sin)     \
  F(cos) F(sign) F(floor) F(round)
// clang-format on
#define NEAP_DECLARED(NAME) tensor NAME(tensor const& x, std::source_location at = std::source_location::current());
NEAP_FUNCTIONS_OF_ONE(NEAP_DECLARED)
NEAP_DECLARED(abs)
NEAP_DECLARED(square)
#undef NEAP_DECLARED

/// The whole quotient of whole numbers, rounded down, and what is left of a: a == b * quotient(a, b) + remainder(a, b). The
/// remainder has the sign of b. A quotient by 0 is 0, and leaves a. Exact for all numbers of the type, but for the least one
/// by -1.
tensor quotient(operand const& a, operand const& b, std::source_location at = std::source_location::current());
tensor remainder(operand const& a, operand const& b, std::source_location at = std::source_location::current());
/// Where x is no number, is infinite, is neither. Booleans; of whole numbers: all false, all false, all true.
tensor isnan(tensor const& x, std::source_location at = std::source_location::current());
tensor isinf(tensor const& x, std::source_location at = std::source_location::current());
tensor isfinite(tensor const& x, std::source_location at = std::source_location::current());

/// The smallest whole number that is not below x. Steps (sign, floor, ceil, round) have slope 0 everywhere.
tensor ceil(tensor const& x, std::source_location at = std::source_location::current());
/// x, or the bound that it is beyond; a NaN stays one. Options: clamp(x, {.low = 0}). The slope at a bound is 0.
tensor clamp(tensor const& x, op::clamp how, std::source_location at = std::source_location::current());
tensor clamp(tensor const& x, double low, double high, std::source_location at = std::source_location::current());
/// x * Phi(x); `tanh_form`: GPT-2's approximation of it.
tensor gelu(tensor const& x, bool tanh_form, std::source_location at = std::source_location::current());
tensor gelu(tensor const& x, std::source_location at = std::source_location::current());
tensor leaky_relu(tensor const& x, double slope = 0.01, std::source_location at = std::source_location::current());
/// x, or alpha (e^x - 1) where x is not above 0; alpha is not negative.
tensor elu(tensor const& x, double alpha = 1, std::source_location at = std::source_location::current());
/// x^p; a NaN for negative x if p is not whole.
tensor pow(tensor const& x, double p, std::source_location at = std::source_location::current());

tensor add(tensor const& a, tensor const& b, std::source_location at = std::source_location::current());
tensor mul(tensor const& a, tensor const& b, std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/elementwise.ipp>
#endif
