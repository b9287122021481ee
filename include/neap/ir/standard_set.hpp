// The standard operators by name: what stands here has its kernels compiled in one place of a program
// (model/kernels.hpp), every other operator's kernel is compiled where it is used. The operators themselves are in
// ir/operators; ir/standard_operators.hpp makes a set of them.
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

/// All of them in order: S(name) of structs, which are declared here and defined in ir/operators, A(name) of the aliases
/// above. (As a macro, so that the row of each can be written down: to look it up in a list of types takes a function of
/// all these types for each of them, a thirtieth of what the umbrella takes to compile.)
// clang-format off
#define NEAP_STANDARD_OPERATORS(S, A)                                                                            \
  S(opaque) S(store) S(load)                                                                                     \
  /* movement */                                                                                                 \
  S(copy) S(cast) S(fill) S(reshape) S(permute) S(slice) S(split) S(pad) S(concat) S(blank) S(place)             \
  S(combine_into) S(broadcast_to) S(as_strided) S(sum_to) S(triangle)                                            \
  /* scalar functions */                                                                                         \
  S(neg) S(exp) S(log) S(sqrt) S(rsqrt) S(reciprocal) S(abs) S(square) S(tanh) S(sigmoid) S(relu) S(gelu)        \
  S(silu) S(erf) S(softplus) S(leaky_relu) S(add_scalar) S(mul_scalar) S(pow_scalar) A(exp_grad) A(log_grad)     \
  A(sqrt_grad) A(rsqrt_grad) A(reciprocal_grad) A(abs_grad) A(square_grad) A(tanh_grad) A(sigmoid_grad)          \
  A(relu_grad) S(gelu_grad) A(silu_grad) A(erf_grad) A(softplus_grad) S(leaky_relu_grad) S(pow_scalar_grad)      \
  A(gelu_grad_and_result) A(silu_grad_and_result) S(sin) S(cos) S(sign) S(floor) S(round) S(clamp) A(sin_grad)   \
  A(cos_grad) A(clamp_grad)                                                                                      \
  /* arithmetic, comparison, choice */                                                                           \
  S(add) S(sub) S(mul) S(div) S(maximum) S(minimum) S(pow_op) S(greater) S(greater_equal) S(less) S(less_equal)  \
  S(equal) S(not_equal) S(where)                                                                                 \
  /* products and reductions */                                                                                  \
  S(matmul) S(sum) S(mean) S(max_reduce) S(min_reduce) S(arg_max) S(cumsum)                                      \
  /* rows */                                                                                                     \
  S(softmax) S(softmax_grad) S(log_softmax) S(log_softmax_grad) S(layer_norm) S(layer_norm_grad) S(rms_norm)     \
  S(rms_norm_grad) S(cross_entropy) S(cross_entropy_grad) S(mse) S(mse_grad) S(binary_cross_entropy)             \
  S(binary_cross_entropy_grad) S(huber)                                                                          \
  /* networks */                                                                                                 \
  S(dropout) S(dropout_grad) S(conv2d) S(conv2d_grad_input) S(conv2d_grad_weight) S(attention) S(attention_grad) \
  /* norms of channels, images, picking */                                                                       \
  S(batch_norm) S(batch_norm_grad) S(batch_norm_relu_grad) S(batch_norm_update) S(batch_norm_inference)          \
  S(group_norm) S(group_norm_grad) S(max_pool2d) S(max_pool2d_grad) S(avg_pool2d) S(avg_pool2d_grad)             \
  S(adaptive_avg_pool2d) S(adaptive_avg_pool2d_grad) S(interpolate) S(interpolate_grad) S(embedding)             \
  S(embedding_grad) S(gather) S(scatter_add) S(index_select) S(index_add) S(one_hot) S(topk)                     \
  /* updates */                                                                                                  \
  S(sgd) S(momentum) S(adam) S(adamw) S(lion) S(muon) S(increment) S(accumulate) S(reset) S(sum_squares)             \
  S(clip_factor) S(scale_by) A(matmul_update_sgd) A(matmul_update_momentum) A(matmul_update_adam) A(matmul_update_adamw)        \
  A(matmul_update_lion)                                                                        \
  /* rows are told in plans' fingerprints, so new ones come last */                                              \
  S(wait) S(adafactor) S(assign) S(elu) A(elu_grad) S(multinomial)                      \
  S(count_back) S(take_back) S(move_loss_scale) S(fused) A(clamp_grad_at)           \
  A(exp_grad_at) A(sqrt_grad_at) S(scalar_over) A(scalar_over_grad) A(rsqrt_grad_at) A(reciprocal_grad_at) \
  A(tanh_grad_at) A(sigmoid_grad_at) A(elu_grad_at)
// clang-format on

#define NEAP_DECLARED(name) struct name;
#define NEAP_NOTHING(name)
NEAP_STANDARD_OPERATORS(NEAP_DECLARED, NEAP_NOTHING)
#undef NEAP_DECLARED
#undef NEAP_NOTHING

template <class None, class... Op>  // the macro puts a comma before each name
struct list_but_first {
  using type = type_list<Op...>;
};
#define NEAP_LISTED(name) , name
using standard_list = list_but_first<void NEAP_STANDARD_OPERATORS(NEAP_LISTED, NEAP_LISTED)>::type;
#undef NEAP_LISTED

}  // namespace op

namespace detail {
#define NEAP_ROW(name) name,
enum class standard_rows : int { NEAP_STANDARD_OPERATORS(NEAP_ROW, NEAP_ROW) };
#undef NEAP_ROW

/// The place of an operator among the standard ones; -1 if it is none of them.
template <class Op>
inline constexpr int standard_row = -1;
#define NEAP_ROW(name) \
  template <>          \
  inline constexpr int standard_row<op::name> = static_cast<int>(standard_rows::name);
NEAP_STANDARD_OPERATORS(NEAP_ROW, NEAP_ROW)
#undef NEAP_ROW
#undef NEAP_STANDARD_OPERATORS
}  // namespace detail

/// Whether Op is one of the standard operators.
template <class Op>
inline constexpr bool is_standard = detail::standard_row<Op> >= 0;

}}  // namespace neap::v0
