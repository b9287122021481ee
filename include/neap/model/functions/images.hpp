// Functions of images (n, c, h, w): convolution, pooling, resizing, and norms over channels. The operators' attributes are
// the options, pairs of numbers being (rows, columns): conv2d(x, w, b, {.stride = {2, 2}, .padding = {1, 1}}).
#pragma once

#include <neap/ir/operators/channel_norm.hpp>
#include <neap/ir/operators/conv2d.hpp>
#include <neap/ir/operators/image.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap::inline v0 {

/// x (n, c, h, w), weight (o, c / groups, kh, kw), bias (o) or empty -> (n, o, h', w')
template <class Backend = host_backend>
tensor conv2d(tensor const& x, tensor const& weight, tensor const& bias, op::conv2d how = {},
              std::source_location at = std::source_location::current()) {
  tensor const image = contiguous<Backend>(x, at);
  if (bias.is_empty()) return apply<Backend>(how, {image, weight}, at);
  return apply<Backend>(how, {image, weight, bias}, at);
}
/// The largest element, or the mean, of each window.
template <class Backend = host_backend>
tensor max_pool2d(tensor const& x, op::max_pool2d how = {}, std::source_location at = std::source_location::current()) {
  return apply<Backend>(how, {contiguous<Backend>(x, at)}, at);
}
template <class Backend = host_backend>
tensor avg_pool2d(tensor const& x, op::avg_pool2d how = {}, std::source_location at = std::source_location::current()) {
  return apply<Backend>(how, {contiguous<Backend>(x, at)}, at);
}
/// The mean of each of rows x columns nearly equal parts; 1 x 1 is global pooling.
template <class Backend = host_backend>
tensor adaptive_avg_pool2d(tensor const& x, std::int64_t rows = 1, std::int64_t columns = 1,
                           std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::adaptive_avg_pool2d{rows, columns}, {contiguous<Backend>(x, at)}, at);
}
/// Resized to rows x columns: nearest, or {.bilinear = true}.
template <class Backend = host_backend>
tensor interpolate(tensor const& x, std::int64_t rows, std::int64_t columns, op::interpolate how = {},
                   std::source_location at = std::source_location::current()) {
  how.out_h = rows, how.out_w = columns;
  return apply<Backend>(how, {contiguous<Backend>(x, at)}, at);
}

struct batch_norm_form {
  double epsilon = 1e-5, momentum = 0.1;
};
/// In training: normalised by the batch's statistics of each channel, and the running ones moved towards them in place.
/// Under neap::evaluation: by the running ones.
template <class Backend = host_backend>
tensor batch_norm(tensor const& x, tensor const& weight, tensor const& bias, tensor const& running_mean,
                  tensor const& running_variance, batch_norm_form how = {},
                  std::source_location at = std::source_location::current()) {
  tensor const dense = contiguous<Backend>(x, at);
  if (!context_access::is_training())
    return apply<Backend>(op::batch_norm_inference{how.epsilon}, {dense, running_mean, running_variance, weight, bias},
                          at);
  auto const out = apply_all<Backend>(op::batch_norm{how.epsilon}, {dense, weight, bias}, at);
  auto const count = x.size(1, at) > 0 ? x.count(at) / x.size(1, at) : 0;
  apply_all<Backend>(op::batch_norm_update{how.momentum, how.epsilon, count},
                     {running_mean, running_variance, out[1], out[2]}, at);
  return out[0];
}
/// Normalised over each image's groups of channels.
template <class Backend = host_backend>
tensor group_norm(tensor const& x, tensor const& weight, tensor const& bias, std::int64_t groups, double epsilon = 1e-5,
                  std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::group_norm{groups, epsilon}, {contiguous<Backend>(x, at), weight, bias}, at);
}

}  // namespace neap::inline v0
