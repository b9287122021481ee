// The standard operators that have a kernel on a GPU. A plan with another one is refused when it is bound to a device, by
// its name.
#pragma once

// clang-format off
#define NEAP_CUDA_OPERATORS(OF)                                                                            \
  OF(softmax) OF(softmax_grad) OF(log_softmax) OF(log_softmax_grad) OF(layer_norm) OF(layer_norm_grad)     \
  OF(rms_norm) OF(rms_norm_grad) OF(cross_entropy) OF(cross_entropy_grad) OF(mse)                          \
  OF(batch_norm) OF(batch_norm_grad) OF(batch_norm_relu_grad) OF(batch_norm_update) OF(batch_norm_inference) \
  OF(group_norm) OF(group_norm_grad) OF(gather) OF(index_select)                                           \
  OF(attention) OF(attention_grad) OF(matmul) OF(conv2d) OF(conv2d_grad_input) OF(conv2d_grad_weight)     \
  /* movement */                                                                                           \
  OF(copy) OF(cast) OF(fill) OF(reshape) OF(permute) OF(slice) OF(split) OF(pad) OF(concat) OF(blank)      \
  OF(place) OF(combine_into) OF(broadcast_to) OF(as_strided) OF(triangle)                                  \
  /* elementwise */                                                                                        \
  OF(neg) OF(exp) OF(log) OF(sqrt) OF(rsqrt) OF(reciprocal) OF(abs) OF(square) OF(tanh) OF(sigmoid)        \
  OF(relu) OF(gelu) OF(silu) OF(erf) OF(softplus) OF(leaky_relu) OF(add_scalar) OF(mul_scalar)             \
  OF(pow_scalar) OF(exp_grad) OF(log_grad) OF(sqrt_grad) OF(rsqrt_grad) OF(reciprocal_grad) OF(abs_grad)   \
  OF(square_grad) OF(tanh_grad) OF(sigmoid_grad) OF(relu_grad) OF(gelu_grad) OF(silu_grad) OF(erf_grad)    \
  OF(softplus_grad) OF(leaky_relu_grad) OF(pow_scalar_grad) OF(gelu_grad_and_result)                       \
  OF(silu_grad_and_result) OF(sin) OF(cos) OF(sign) OF(floor) OF(round) OF(clamp) OF(sin_grad)             \
  OF(cos_grad) OF(clamp_grad) OF(elu) OF(elu_grad) OF(scalar_over) OF(scalar_over_grad)                       \
  OF(rsqrt_grad_at) OF(reciprocal_grad_at) OF(tanh_grad_at) OF(sigmoid_grad_at) OF(elu_grad_at) OF(clamp_grad_at) OF(exp_grad_at) OF(sqrt_grad_at)            \
  OF(add) OF(sub) OF(mul) OF(div) OF(maximum)             \
  OF(minimum) OF(pow_op) OF(greater) OF(greater_equal) OF(less) OF(less_equal) OF(equal) OF(not_equal)     \
  OF(where) OF(mse_grad) OF(binary_cross_entropy) OF(binary_cross_entropy_grad) OF(huber) OF(accumulate)   \
  OF(reset) OF(assign) OF(scale_by) OF(fused)                                                                        \
  /* reductions, lines, picking, images */                                                                 \
  OF(sum_to) OF(sum) OF(mean) OF(max_reduce) OF(min_reduce) OF(arg_max) OF(cumsum) OF(topk)                \
  OF(multinomial) OF(embedding) OF(embedding_grad) OF(scatter_add) OF(index_add) OF(one_hot)               \
  OF(max_pool2d) OF(max_pool2d_grad) OF(avg_pool2d) OF(avg_pool2d_grad) OF(adaptive_avg_pool2d)            \
  OF(adaptive_avg_pool2d_grad) OF(interpolate) OF(interpolate_grad) OF(dropout) OF(dropout_grad)           \
  /* updates */                                                                                            \
  OF(sgd) OF(momentum) OF(adam) OF(adamw) OF(lion) OF(muon) OF(adafactor) OF(increment) OF(sum_squares)    \
  OF(matmul_update_sgd) OF(matmul_update_momentum) OF(matmul_update_adam) OF(matmul_update_adamw)          \
  OF(matmul_update_lion)                                                                                   \
  OF(clip_factor) OF(count_back) OF(take_back) OF(move_loss_scale)
// clang-format on
