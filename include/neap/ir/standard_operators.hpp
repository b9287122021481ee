// The standard set of operators, and the graph over it.
#pragma once

#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/attention.hpp>
#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/channel_norm.hpp>
#include <neap/ir/operators/conv2d.hpp>
#include <neap/ir/operators/dropout.hpp>
#include <neap/ir/operators/image.hpp>
#include <neap/ir/operators/loss.hpp>
#include <neap/ir/operators/matmul.hpp>
#include <neap/ir/operators/matmul_update.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/picking.hpp>
#include <neap/ir/operators/reduction.hpp>
#include <neap/ir/operators/row_norm.hpp>
#include <neap/ir/operators/softmax.hpp>
#include <neap/ir/operators/split.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/ir/operators/update.hpp>

namespace neap::inline v0 {

struct standard_operators
    : operator_set<
          op::opaque, op::store, op::load,
          // movement
          op::copy, op::cast, op::fill, op::reshape, op::permute, op::slice, op::split, op::pad, op::concat,
          op::broadcast_to, op::sum_to,
          // scalar functions
          op::neg, op::exp, op::log, op::sqrt, op::rsqrt, op::reciprocal, op::abs, op::square, op::tanh, op::sigmoid,
          op::relu, op::gelu, op::silu, op::erf, op::softplus, op::leaky_relu, op::add_scalar, op::mul_scalar,
          op::pow_scalar, op::exp_grad, op::log_grad, op::sqrt_grad, op::rsqrt_grad, op::reciprocal_grad, op::abs_grad,
          op::square_grad, op::tanh_grad, op::sigmoid_grad, op::relu_grad, op::gelu_grad, op::silu_grad, op::erf_grad,
          op::softplus_grad, op::leaky_relu_grad, op::pow_scalar_grad,
          // arithmetic, comparison, choice
          op::add, op::sub, op::mul, op::div, op::maximum, op::minimum, op::pow_op, op::greater, op::greater_equal,
          op::less, op::less_equal, op::equal, op::not_equal, op::where,
          // products and reductions
          op::matmul, op::sum, op::mean, op::max_reduce, op::min_reduce, op::arg_max,
          // rows
          op::softmax, op::softmax_grad, op::log_softmax, op::log_softmax_grad, op::layer_norm, op::layer_norm_grad,
          op::rms_norm, op::rms_norm_grad, op::cross_entropy, op::cross_entropy_grad, op::mse, op::mse_grad,
          // networks
          op::dropout, op::dropout_grad, op::conv2d, op::conv2d_grad_input, op::conv2d_grad_weight, op::attention,
          op::attention_grad,
          // norms of channels, images, picking
          op::batch_norm, op::batch_norm_grad, op::batch_norm_update, op::batch_norm_inference, op::group_norm,
          op::group_norm_grad, op::max_pool2d, op::max_pool2d_grad, op::avg_pool2d, op::avg_pool2d_grad,
          op::adaptive_avg_pool2d, op::adaptive_avg_pool2d_grad, op::interpolate, op::interpolate_grad, op::embedding,
          op::embedding_grad, op::gather, op::scatter_add,
          // updates
          op::sgd, op::momentum, op::adam, op::adamw, op::increment, op::accumulate, op::reset, op::sum_squares,
          op::clip_factor, op::scale_by, op::matmul_update<op::sgd>, op::matmul_update<op::momentum>,
          op::matmul_update<op::adam>, op::matmul_update<op::adamw>> {};

using graph = basic_graph<standard_operators>;

}  // namespace neap::inline v0
