// All functors that the standard set maps: F(functor, inputs, outputs, least and largest argument that tests take).
#pragma once

#include <neap/backend/kernels/cross_entropy.hpp>
#include <neap/backend/kernels/dropout.hpp>
#include <neap/backend/kernels/muon.hpp>
#include <neap/backend/kernels/optimizer.hpp>
#include <neap/ir/operators/channel_norm.hpp>
#include <neap/ir/operators/loss.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/ir/operators/update.hpp>

// clang-format off
#define NEAP_MAPPED_FUNCTORS(F)                                                                                   \
  F(op::neg, 1, 1, -2, 2) F(op::exp, 1, 1, -2, 2) F(op::log, 1, 1, 0.1, 4) F(op::sqrt, 1, 1, 0, 4)                 \
  F(op::rsqrt, 1, 1, 0.1, 4) F(op::reciprocal, 1, 1, 0.1, 4) F(op::abs, 1, 1, -2, 2) F(op::square, 1, 1, -2, 2)    \
  F(op::tanh, 1, 1, -2, 2) F(op::sigmoid, 1, 1, -2, 2) F(op::relu, 1, 1, -2, 2) F(op::silu, 1, 1, -2, 2)           \
  F(op::erf, 1, 1, -2, 2) F(op::softplus, 1, 1, -2, 2) F(op::leaky_relu, 1, 1, -2, 2) F(op::elu, 1, 1, -2, 2)      \
  F(op::add_scalar, 1, 1, -2, 2) F(op::mul_scalar, 1, 1, -2, 2) F(op::pow_scalar, 1, 1, 0.1, 2)                    \
  F(op::sin, 1, 1, -2, 2) F(op::cos, 1, 1, -2, 2) F(op::sign, 1, 1, -2, 2) F(op::floor, 1, 1, -9, 9)               \
  F(op::round, 1, 1, -9, 9) F(op::clamp, 1, 1, -2, 2)                                                              \
  F(op::detail::gelu_function<false>, 1, 1, -2, 2) F(op::detail::gelu_function<true>, 1, 1, -2, 2)                 \
  F(op::grad_of<op::exp>, 2, 1, -2, 2) F(op::grad_of<op::log>, 2, 1, 0.1, 4) F(op::grad_of<op::sqrt>, 2, 1, 0.1, 4) \
  F(op::grad_of<op::rsqrt>, 2, 1, 0.1, 4) F(op::grad_of<op::reciprocal>, 2, 1, 0.1, 4)                             \
  F(op::grad_of<op::abs>, 2, 1, -2, 2) F(op::grad_of<op::square>, 2, 1, -2, 2) F(op::grad_of<op::tanh>, 2, 1, -1, 1) \
  F(op::grad_of<op::sigmoid>, 2, 1, 0, 1) F(op::grad_of<op::relu>, 2, 1, -2, 2) F(op::grad_of<op::silu>, 2, 1, -2, 2) \
  F(op::grad_of<op::erf>, 2, 1, -2, 2) F(op::grad_of<op::softplus>, 2, 1, -2, 2) F(op::grad_of<op::sin>, 2, 1, -2, 2) \
  F(op::grad_of<op::cos>, 2, 1, -2, 2) F(op::grad_of<op::clamp>, 2, 1, -2, 2) F(op::grad_of<op::elu>, 2, 1, -1, 2)  \
  F(op::grad_at<op::exp>, 2, 1, -2, 2) F(op::grad_at<op::sqrt>, 2, 1, 0.1, 4) F(op::grad_at<op::rsqrt>, 2, 1, 0.1, 4) \
  F(op::grad_at<op::reciprocal>, 2, 1, 0.1, 4) F(op::grad_at<op::tanh>, 2, 1, -2, 2)                               \
  F(op::grad_at<op::sigmoid>, 2, 1, -2, 2) F(op::grad_at<op::elu>, 2, 1, -2, 2) F(op::grad_at<op::clamp>, 2, 1, -2, 2) \
  F(op::scalar_over, 1, 1, 0.1, 4) F(op::grad_of<op::scalar_over>, 2, 1, 0.1, 4)                                   \
  F(op::leaky_relu_grad, 2, 1, -2, 2) F(op::pow_scalar_grad, 2, 1, 0.1, 2)                                         \
  F(op::detail::gelu_function<false>, 2, 1, -2, 2) F(op::detail::gelu_function<true>, 2, 1, -2, 2)                 \
  F(op::detail::gelu_grad_and_result<false>, 2, 2, -2, 2) F(op::detail::gelu_grad_and_result<true>, 2, 2, -2, 2)   \
  F(op::grad_and_result<op::silu>, 2, 2, -2, 2)                                                                    \
  F(op::add, 2, 1, -2, 2) F(op::sub, 2, 1, -2, 2) F(op::mul, 2, 1, -2, 2) F(op::div, 2, 1, 0.1, 4)                 \
  F(op::maximum, 2, 1, -2, 2) F(op::minimum, 2, 1, -2, 2) F(op::pow_op, 2, 1, 0.1, 2) F(op::greater, 2, 1, -2, 2)  \
  F(op::greater_equal, 2, 1, -2, 2) F(op::less, 2, 1, -2, 2) F(op::less_equal, 2, 1, -2, 2)                        \
  F(op::equal, 2, 1, -2, 2) F(op::not_equal, 2, 1, -2, 2) F(choice_of, 3, 1, -2, 2) F(identity_of, 1, 1, -2, 2)    \
  F(op::huber, 2, 1, -2, 2) F(op::detail::binary_cross_entropy_function<true>, 2, 1, 0.1, 0.9)                     \
  F(op::detail::binary_cross_entropy_function<false>, 2, 1, 0, 1)                                                  \
  F(op::detail::binary_cross_entropy_function<true>, 3, 1, 0.1, 0.9)                                               \
  F(op::detail::binary_cross_entropy_function<false>, 3, 1, 0, 1)                                                  \
  F(sgd_step, 2, 1, -2, 2) F(momentum_step, 3, 2, -2, 2) F(lion_step, 3, 2, -2, 2) F(adam_step, 4, 3, 0.1, 2)      \
  F(scale_step, 2, 1, -2, 2) F(muon_blend, 2, 2, -2, 2) F(muon_step, 2, 1, -2, 2)                                  \
  F(times_number, 1, 1, -2, 2) F(muon_polynomial, 2, 1, -2, 2) F(op::detail::running_average, 4, 2, 0.1, 2)         \
  F(squared_difference, 2, 1, -2, 2) F(squared_error_slope, 3, 1, -2, 2)
// clang-format on
