// The standard operators whose kernels are compiled in a file of their own where the library is compiled apart: half of
// the time that all kernels take.
#pragma once

// clang-format off
#define NEAP_IMAGE_KERNELS(OF)                                                                            \
  OF(conv2d) OF(conv2d_grad_input) OF(conv2d_grad_weight)                                                 \
  OF(batch_norm) OF(batch_norm_grad) OF(batch_norm_relu_grad) OF(batch_norm_update) OF(batch_norm_inference) \
  OF(group_norm) OF(group_norm_grad)                                                                      \
  OF(max_pool2d) OF(max_pool2d_grad) OF(avg_pool2d) OF(avg_pool2d_grad)                                   \
  OF(adaptive_avg_pool2d) OF(adaptive_avg_pool2d_grad) OF(interpolate) OF(interpolate_grad)
// clang-format on
