// The standard operators that have a kernel on a GPU. A plan with another one is refused when it is bound to a device, by
// its name.
#pragma once

// clang-format off
#define NEAP_CUDA_OPERATORS(OF)                                                                            \
  OF(softmax) OF(softmax_grad) OF(log_softmax) OF(log_softmax_grad) OF(layer_norm) OF(layer_norm_grad)     \
  OF(rms_norm) OF(rms_norm_grad) OF(cross_entropy) OF(cross_entropy_grad) OF(mse)                          \
  OF(batch_norm) OF(batch_norm_grad) OF(batch_norm_relu_grad) OF(batch_norm_update) OF(batch_norm_inference) \
  OF(group_norm) OF(group_norm_grad) OF(gather) OF(index_select)    \
  OF(attention) OF(attention_grad) OF(matmul) OF(conv2d) OF(conv2d_grad_input) OF(conv2d_grad_weight)
// clang-format on
