// The standard operators: one table, from which all lists of them derive. Their kernels are compiled in one place of a
// program (model/kernels.hpp), every other operator's where it is used. The operators themselves are in ir/operators;
// ir/standard_operators.hpp makes a set of them. include/neap/README.md, "A standard operator", says how to add one.
#pragma once

#include <cstddef>

namespace neap { inline namespace v0 {

template <class... Op>
struct type_list {
  static constexpr std::size_t size = sizeof...(Op);
};

namespace op {

template <class F>
struct grad_of;
template <class F>
struct grad_at;
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
using elu_grad = grad_of<struct elu>;
using scalar_over_grad = grad_of<struct scalar_over>;

using exp_grad_at = grad_at<struct exp>;
using sqrt_grad_at = grad_at<struct sqrt>;
using rsqrt_grad_at = grad_at<struct rsqrt>;
using reciprocal_grad_at = grad_at<struct reciprocal>;
using tanh_grad_at = grad_at<struct tanh>;
using sigmoid_grad_at = grad_at<struct sigmoid>;
using elu_grad_at = grad_at<struct elu>;
using clamp_grad_at = grad_at<struct clamp>;

using gelu_grad_and_result = grad_and_result<struct gelu>;
using silu_grad_and_result = grad_and_result<struct silu>;
using matmul_update_sgd = matmul_update<struct sgd>;
using matmul_update_momentum = matmul_update<struct momentum>;
using matmul_update_adam = matmul_update<struct adam>;
using matmul_update_adamw = matmul_update<struct adamw>;
using matmul_update_lion = matmul_update<struct lion>;

/// The table of the standard operators, one row each:
///
///   S(name, kernels)   a struct, declared here and defined in ir/operators
///   A(name, kernels)   an alias above
///   I(name)            a struct with kernels of images: they take half of the time that all kernels take to compile, so
///                      where the library is compiled apart they have a file of their own (neap/src/image_kernels.hpp)
///
/// `kernels` is one of
///
///   none   the executables do its work: transfers, and operators of unknown meaning
///   host   on the host alone: a plan with it is refused when it is bound to a GPU
///   all    on the host and on GPUs. So have I(name)
///   step   likewise, and it may be a step of op::fused: one output, at most three inputs, attributes of 16 bytes
///
/// Other facets are members of the struct (ir/operator.hpp). Digests and files have names, so rows may be added and moved.
/// (A macro, because a type's place in a list is slow to compile: a thirtieth of the time that the umbrella takes.)
// clang-format off
#define NEAP_STANDARD_OPERATORS(S, A, I)                                                                               \
  S(opaque, none) S(store, none) S(load, none) S(wait, none)                                                           \
  /* movement */                                                                                                       \
  S(copy, all) S(cast, step) S(fill, all) S(reshape, all) S(permute, all) S(slice, all) S(split, all) S(pad, all)      \
  S(concat, all) S(blank, all) S(place, all) S(combine_into, all) S(broadcast_to, all) S(as_strided, all)              \
  S(sum_to, all) S(triangle, all) S(assign, all)                                                                       \
  /* scalar functions */                                                                                               \
  S(neg, step) S(exp, step) S(log, step) S(sqrt, step) S(rsqrt, step) S(reciprocal, step) S(abs, step)                 \
  S(square, step) S(tanh, step) S(sigmoid, step) S(relu, step) S(gelu, step) S(silu, step) S(erf, step)                \
  S(softplus, step) S(leaky_relu, step) S(add_scalar, step) S(mul_scalar, step) S(pow_scalar, step) A(exp_grad, step)  \
  A(log_grad, step) A(sqrt_grad, step) A(rsqrt_grad, step) A(reciprocal_grad, step) A(abs_grad, step)                  \
  A(square_grad, step) A(tanh_grad, step) A(sigmoid_grad, step) A(relu_grad, step) S(gelu_grad, step)                  \
  A(silu_grad, step) A(erf_grad, step) A(softplus_grad, step) S(leaky_relu_grad, step) S(pow_scalar_grad, step)        \
  A(gelu_grad_and_result, all) A(silu_grad_and_result, all) S(sin, step) S(cos, step) S(sign, step) S(floor, step)     \
  S(round, step) S(clamp, step) A(sin_grad, step) A(cos_grad, step) A(clamp_grad, step) S(elu, step)                   \
  A(elu_grad, step)                                                                                                    \
  /* arithmetic, comparison, choice */                                                                                 \
  S(add, step) S(sub, step) S(mul, step) S(div, step) S(maximum, step) S(minimum, step) S(pow_op, step)                \
  S(greater, step) S(greater_equal, step) S(less, step) S(less_equal, step) S(equal, step) S(not_equal, step)          \
  S(where, step) S(scalar_over, step) A(scalar_over_grad, step) A(rsqrt_grad_at, step) A(reciprocal_grad_at, step)     \
  A(tanh_grad_at, step) A(sigmoid_grad_at, step) A(elu_grad_at, step) A(clamp_grad_at, step) A(exp_grad_at, step)      \
  A(sqrt_grad_at, step)                                                                                                \
  /* products and reductions */                                                                                        \
  S(matmul, all) S(sum, all) S(mean, all) S(max_reduce, all) S(min_reduce, all) S(arg_max, all) S(cumsum, all)         \
  /* rows */                                                                                                           \
  S(softmax, all) S(softmax_grad, all) S(log_softmax, all) S(log_softmax_grad, all) S(layer_norm, all)                 \
  S(layer_norm_grad, all) S(rms_norm, all) S(rms_norm_grad, all) S(cross_entropy, all) S(cross_entropy_grad, all)      \
  S(mse, all) S(mse_grad, all) S(binary_cross_entropy, all) S(binary_cross_entropy_grad, all) S(huber, all)            \
  /* networks */                                                                                                       \
  S(dropout, all) S(dropout_grad, all) I(conv2d) I(conv2d_grad_input) I(conv2d_grad_weight) S(attention, all)          \
  S(attention_grad, all)                                                                                               \
  /* norms of channels, images, picking */                                                                             \
  I(batch_norm) I(batch_norm_grad) I(batch_norm_relu_grad) I(batch_norm_update) I(batch_norm_inference) I(group_norm)  \
  I(group_norm_grad) I(max_pool2d) I(max_pool2d_grad) I(avg_pool2d) I(avg_pool2d_grad) I(adaptive_avg_pool2d)          \
  I(adaptive_avg_pool2d_grad) I(interpolate) I(interpolate_grad) S(embedding, all) S(embedding_grad, all)              \
  S(gather, all) S(scatter_add, all) S(index_select, all) S(index_add, all) S(one_hot, all) S(topk, all)               \
  S(multinomial, all)                                                                                                  \
  /* updates */                                                                                                        \
  S(sgd, all) S(momentum, all) S(adam, all) S(adamw, all) S(lion, all) S(muon, all) S(adafactor, all)                  \
  S(increment, all) S(accumulate, all) S(reset, all) S(sum_squares, all) S(clip_factor, all) S(scale_by, all)          \
  S(rollback_counter, all) S(rollback_if_overflow, all) S(update_loss_scale, all) A(matmul_update_sgd, all)            \
  A(matmul_update_momentum, all) A(matmul_update_adam, all) A(matmul_update_adamw, all) A(matmul_update_lion, all)     \
  /* fused */                                                                                                          \
  S(fused, all)
// clang-format on

#define NEAP_DECLARED(name, ...) struct name;
#define NEAP_NOTHING(...)
NEAP_STANDARD_OPERATORS(NEAP_DECLARED, NEAP_NOTHING, NEAP_DECLARED)
#undef NEAP_DECLARED

template <class None, class... Op>  // the macro puts a comma before each name
struct list_but_first {
  using type = type_list<Op...>;
};
#define NEAP_LISTED(name, ...) , name
using standard_list = list_but_first<void NEAP_STANDARD_OPERATORS(NEAP_LISTED, NEAP_LISTED, NEAP_LISTED)>::type;

#define NEAP_STEP_none(name)
#define NEAP_STEP_host(name)
#define NEAP_STEP_all(name)
#define NEAP_STEP_step(name) , name
#define NEAP_LISTED_STEP(name, kernels) NEAP_STEP_##kernels(name)
/// The operators that can be steps of a fused program, in the order of the table.
using step_list = list_but_first<void NEAP_STANDARD_OPERATORS(NEAP_LISTED_STEP, NEAP_LISTED_STEP, NEAP_NOTHING)>::type;
#undef NEAP_LISTED
#undef NEAP_LISTED_STEP
#undef NEAP_STEP_none
#undef NEAP_STEP_host
#undef NEAP_STEP_all
#undef NEAP_STEP_step

/// Calls OF(name) for those with kernels of images.
#define NEAP_IMAGE_KERNELS(OF) NEAP_STANDARD_OPERATORS(NEAP_NOTHING, NEAP_NOTHING, OF)

}  // namespace op

namespace detail {
#define NEAP_ROW(name, ...) name,
enum class standard_rows : int { NEAP_STANDARD_OPERATORS(NEAP_ROW, NEAP_ROW, NEAP_ROW) };
#undef NEAP_ROW

/// The place of an operator among the standard ones; -1 if it is none of them.
template <class Op>
inline constexpr int standard_row = -1;
#define NEAP_ROW(name, ...) \
  template <>               \
  inline constexpr int standard_row<op::name> = static_cast<int>(standard_rows::name);
NEAP_STANDARD_OPERATORS(NEAP_ROW, NEAP_ROW, NEAP_ROW)
#undef NEAP_ROW

/// Column `kernels` of the table, by row.
enum class kernel_column : unsigned char { none, host, all, step };
#define NEAP_ROW(name, kernels) kernel_column::kernels,
#define NEAP_IMAGE_ROW(name) kernel_column::all,
inline constexpr kernel_column kernel_columns[]{NEAP_STANDARD_OPERATORS(NEAP_ROW, NEAP_ROW, NEAP_IMAGE_ROW)};
#undef NEAP_ROW
#undef NEAP_IMAGE_ROW
}  // namespace detail

/// Whether Op is one of the standard operators.
template <class Op>
inline constexpr bool is_standard = detail::standard_row<Op> >= 0;

}}  // namespace neap::v0
