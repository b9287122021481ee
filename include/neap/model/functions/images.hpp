// Functions of images (n, c, h, w): pooling, resizing, and norms over channels. The operators' attributes are the options,
// pairs of numbers being (rows, columns): max_pool2d(x, {.window = {2, 2}, .stride = {2, 2}}).
#pragma once

#include <neap/ir/operators/channel_norm.hpp>
#include <neap/ir/operators/image.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap::inline v0 {

/// The largest element, or the mean, of each window.
inline tensor max_pool2d(tensor const& x, op::max_pool2d how = {},
                         std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(how, {contiguous(x)});
}
inline tensor avg_pool2d(tensor const& x, op::avg_pool2d how = {},
                         std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(how, {contiguous(x)});
}
/// The mean of each of rows x columns nearly equal parts; 1 x 1 is global pooling.
inline tensor adaptive_avg_pool2d(tensor const& x, std::int64_t rows = 1, std::int64_t columns = 1,
                                  std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(op::adaptive_avg_pool2d{rows, columns}, {contiguous(x)});
}
/// Resized to rows x columns: nearest, or {.bilinear = true}.
inline tensor interpolate(tensor const& x, std::int64_t rows, std::int64_t columns, op::interpolate how = {},
                          std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  how.out_h = rows, how.out_w = columns;
  return apply(how, {contiguous(x)});
}

struct batch_norm_form {
  double epsilon = 1e-5, momentum = 0.1;
  bool fixed_statistics = false;  // in training too
};
/// In training: normalised by the batch's statistics of each channel, and the running ones moved towards them in place.
/// Under neap::evaluation, or with fixed statistics: by the running ones, which stay.
inline tensor batch_norm(tensor const& x, tensor const& weight, tensor const& bias, tensor const& running_mean,
                         tensor const& running_variance, batch_norm_form how = {},
                         std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  tensor const dense = contiguous(x);
  if (how.fixed_statistics || !context_access::is_training()) {
    auto const used = [&](tensor const& statistic) { return cast(statistic, computed_in(x.element())); };
    return apply(op::batch_norm_inference{how.epsilon},
                 {dense, used(running_mean), used(running_variance), weight, bias});
  }
  auto const out = apply_all(op::batch_norm{how.epsilon}, {dense, weight, bias});
  if (x.count() == 0)
    throw_error(context_access::place(at), {"batch_norm: there are no elements to take statistics of, was given ",
                                            x.type(), ": leave out empty batches"});
  auto const count = x.count() / x.size(1);
  apply_all(op::batch_norm_update{how.momentum, how.epsilon, count}, {running_mean, running_variance, out[1], out[2]});
  return out[0];
}
/// Normalised over each image's groups of channels.
inline tensor group_norm(tensor const& x, tensor const& weight, tensor const& bias, std::int64_t groups,
                         double epsilon = 1e-5, std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(op::group_norm{groups, epsilon}, {contiguous(x), weight, bias});
}

}  // namespace neap::inline v0
