// The operators that can be steps of programs (ir/element_program.hpp), and what these know of them.
#pragma once

#include <neap/ir/operator.hpp>
#include <neap/ir/operators/binary.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace neap { inline namespace v0 {

namespace detail {
/// What programs know of an operator that can be a step. (Its facets would bring its kernel along.)
struct step_operator {
  std::string_view name;
  int row = -1, arguments = 0;
  std::uint32_t size = 0;  // bytes of its attributes
  double flops = 0;
  void (*construct)(void*) = nullptr;
  void (*infer)(void const*, shape_context&) = nullptr;
  std::span<attribute_field const> attributes;
};
}  // namespace detail

namespace op::detail {

using neap::detail::max_step_bytes, neap::detail::step_at, neap::detail::step_operator;

using step_list =
    type_list<cast, neg, exp, log, sqrt, rsqrt, reciprocal, abs, square, tanh, sigmoid, relu, gelu, silu, erf, softplus,
              leaky_relu, add_scalar, mul_scalar, pow_scalar, exp_grad, log_grad, sqrt_grad, rsqrt_grad,
              reciprocal_grad, abs_grad, square_grad, tanh_grad, sigmoid_grad, relu_grad, gelu_grad, silu_grad,
              erf_grad, softplus_grad, leaky_relu_grad, pow_scalar_grad, sin, cos, sign, floor, round, clamp, sin_grad,
              cos_grad, clamp_grad, elu, elu_grad, add, sub, mul, div, maximum, minimum, pow_op, greater, greater_equal,
              less, less_equal, equal, not_equal, where, scalar_over, scalar_over_grad, rsqrt_grad_at,
              reciprocal_grad_at, tanh_grad_at, sigmoid_grad_at, elu_grad_at, clamp_grad_at, exp_grad_at, sqrt_grad_at>;

/// The place in step_list of the standard operator in this row; -1: it can be no step.
int step_place(int row);

}  // namespace op::detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/element_steps.ipp>
#endif
