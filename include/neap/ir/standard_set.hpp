// The standard operators by name: what stands here has its kernels compiled in one place of a program
// (model/kernels.hpp), every other operator's kernel is compiled where it is used. The operators themselves are in
// ir/operators; ir/standard_operators.hpp makes a set of them.
#pragma once

#include <cstddef>

namespace neap::inline v0 {

template <class... Op>
struct type_list {
  static constexpr std::size_t size = sizeof...(Op);
};

namespace op {

template <class F>
struct grad_of;
template <class F>
struct grad_and_result;
template <class Update>
struct matmul_update;

using exp_grad = grad_of<struct exp>;
using log_grad = grad_of<struct log>;
using sqrt_grad = grad_of<struct sqrt>;
using rsqrt_grad = grad_of<struct rsqrt>;
using reciprocal_grad = grad_of<struct reciprocal>;
using abs_grad = grad_of<struct abs>;
using square_grad = grad_of<struct square>;
using tanh_grad = grad_of<struct tanh>;
using sigmoid_grad = grad_of<struct sigmoid>;
using relu_grad = grad_of<struct relu>;
using silu_grad = grad_of<struct silu>;
using erf_grad = grad_of<struct erf>;
using softplus_grad = grad_of<struct softplus>;
using sin_grad = grad_of<struct sin>;
using cos_grad = grad_of<struct cos>;
using clamp_grad = grad_of<struct clamp>;

/// A name with `struct` before it is declared here, and defined in ir/operators.
using standard_list = type_list<
    struct opaque, struct store, struct load,
    // movement
    struct copy, struct cast, struct fill, struct reshape, struct permute, struct slice, struct split, struct pad,
    struct concat, struct blank, struct place, struct combine_into, struct broadcast_to, struct as_strided,
    struct sum_to, struct triangle,
    // scalar functions
    struct neg, struct exp, struct log, struct sqrt, struct rsqrt, struct reciprocal, struct abs, struct square,
    struct tanh, struct sigmoid, struct relu, struct gelu, struct silu, struct erf, struct softplus, struct leaky_relu,
    struct add_scalar, struct mul_scalar, struct pow_scalar, exp_grad, log_grad, sqrt_grad, rsqrt_grad, reciprocal_grad,
    abs_grad, square_grad, tanh_grad, sigmoid_grad, relu_grad, struct gelu_grad, silu_grad, erf_grad, softplus_grad,
    struct leaky_relu_grad, struct pow_scalar_grad, grad_and_result<struct gelu>, grad_and_result<struct silu>,
    struct sin, struct cos, struct sign, struct floor, struct round, struct clamp, sin_grad, cos_grad, clamp_grad,
    // arithmetic, comparison, choice
    struct add, struct sub, struct mul, struct div, struct maximum, struct minimum, struct pow_op, struct greater,
    struct greater_equal, struct less, struct less_equal, struct equal, struct not_equal, struct where,
    // products and reductions
    struct matmul, struct sum, struct mean, struct max_reduce, struct min_reduce, struct arg_max, struct cumsum,
    // rows
    struct softmax, struct softmax_grad, struct log_softmax, struct log_softmax_grad, struct layer_norm,
    struct layer_norm_grad, struct rms_norm, struct rms_norm_grad, struct cross_entropy, struct cross_entropy_grad,
    struct mse, struct mse_grad, struct binary_cross_entropy, struct binary_cross_entropy_grad, struct huber,
    // networks
    struct dropout, struct dropout_grad, struct conv2d, struct conv2d_grad_input, struct conv2d_grad_weight,
    struct attention, struct attention_grad,
    // norms of channels, images, picking
    struct batch_norm, struct batch_norm_grad, struct batch_norm_relu_grad, struct batch_norm_update,
    struct batch_norm_inference, struct group_norm, struct group_norm_grad, struct max_pool2d, struct max_pool2d_grad,
    struct avg_pool2d, struct avg_pool2d_grad, struct adaptive_avg_pool2d, struct adaptive_avg_pool2d_grad,
    struct interpolate, struct interpolate_grad, struct embedding, struct embedding_grad, struct gather,
    struct scatter_add, struct index_select, struct index_add, struct one_hot, struct topk,
    // updates
    struct sgd, struct momentum, struct adam, struct adamw, struct lion, struct increment, struct accumulate,
    struct reset, struct sum_squares, struct clip_factor, struct scale_by, matmul_update<struct sgd>,
    matmul_update<struct momentum>, matmul_update<struct adam>, matmul_update<struct adamw>,
    matmul_update<struct lion>>;

}  // namespace op

namespace detail {
template <class Op, class... Listed>
constexpr int row_among(type_list<Listed...>) {
  bool const same[] = {__is_same(Op, Listed)...};
  for (std::size_t k = 0; k < sizeof...(Listed); ++k)
    if (same[k]) return static_cast<int>(k);
  return -1;
}

/// The place of an operator among the standard ones; -1 if it is none of them.
template <class Op>
inline constexpr int standard_row = row_among<Op>(op::standard_list{});
}  // namespace detail

/// Whether Op is one of the standard operators.
template <class Op>
inline constexpr bool is_standard = detail::standard_row<Op> >= 0;

}  // namespace neap::inline v0
