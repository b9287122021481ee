// Functions of images (n, c, h, w): pooling, resizing, and norms over channels. The operators' attributes are the options,
// pairs of numbers being (rows, columns): max_pool2d(x, {.window = {2, 2}, .stride = {2, 2}}).
#pragma once

#include <neap/ir/operators/channel_norm.hpp>
#include <neap/ir/operators/image.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap { inline namespace v0 {

/// The largest element, or the mean, of each window.
tensor max_pool2d(tensor const& x, op::max_pool2d how = {}, std::source_location at = std::source_location::current());
tensor avg_pool2d(tensor const& x, op::avg_pool2d how = {}, std::source_location at = std::source_location::current());
/// The same of sequences (n, c, l). A stride of 0 is the window.
struct pool1d_form {
  std::int64_t window = 2, stride = 0, padding = 0;
};
tensor max_pool1d(tensor const& x, pool1d_form how = {}, std::source_location at = std::source_location::current());
tensor avg_pool1d(tensor const& x, pool1d_form how = {}, std::source_location at = std::source_location::current());
/// The mean of each of rows x columns nearly equal parts; 1 x 1 is global pooling.
tensor adaptive_avg_pool2d(tensor const& x, std::int64_t rows = 1, std::int64_t columns = 1,
                           std::source_location at = std::source_location::current());
/// Resized to rows x columns: nearest, or {.bilinear = true}.
tensor interpolate(tensor const& x, std::int64_t rows, std::int64_t columns, op::interpolate how = {},
                   std::source_location at = std::source_location::current());

struct batch_norm_form {
  double epsilon = 1e-5, momentum = 0.1;
  bool fixed_statistics = false;  // in training too
};
/// In training: normalised by the batch's statistics of each channel, and the running ones moved towards them in place.
/// Under neap::evaluation, or with fixed statistics: by the running ones, which stay.
tensor batch_norm(tensor const& x, tensor const& weight, tensor const& bias, tensor const& running_mean,
                  tensor const& running_variance, batch_norm_form how = {},
                  std::source_location at = std::source_location::current());
/// Normalised over each image's groups of channels.
tensor group_norm(tensor const& x, tensor const& weight, tensor const& bias, std::int64_t groups, double epsilon = 1e-5,
                  std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/images.ipp>
#endif
