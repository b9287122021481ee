// Functions of whole rows (the last axis): softmax, layer norm, rms norm, and the losses over rows.
#pragma once

#include <neap/ir/operators/loss.hpp>
#include <neap/ir/operators/row_norm.hpp>
#include <neap/ir/operators/softmax.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap::inline v0 {

namespace detail {
/// x itself if the elements of each row follow one another, else a copy.
tensor rows(tensor const& x);
}  // namespace detail

/// Positive numbers of sum 1 along an axis.
inline tensor softmax(tensor const& x, std::int64_t axis = -1,
                      std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  if (detail::axis_of(x, axis, "softmax", at) != x.rank() - 1)
    return transpose(softmax(transpose(x, axis, -1), -1), axis, -1);
  return apply(op::softmax{}, {detail::rows(x)});
}
inline tensor log_softmax(tensor const& x, std::int64_t axis = -1,
                          std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  if (detail::axis_of(x, axis, "log_softmax", at) != x.rank() - 1)
    return transpose(log_softmax(transpose(x, axis, -1), -1), axis, -1);
  return apply(op::log_softmax{}, {detail::rows(x)});
}

/// (x - mean) / sqrt(variance + epsilon) * weight + bias along the last axis.
inline tensor layer_norm(tensor const& x, tensor const& weight, tensor const& bias, double epsilon = 1e-5,
                         std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(op::layer_norm{epsilon}, {detail::rows(x), weight, bias});
}
/// x / sqrt(mean(x^2) + epsilon) * weight along the last axis.
inline tensor rms_norm(tensor const& x, tensor const& weight, double epsilon = 1e-6,
                       std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(op::rms_norm{epsilon}, {detail::rows(x), weight});
}

/// The mean over rows of -log softmax(logits)[target]: logits (..., classes), targets (...) of i64. Rows whose target is
/// `ignored` do not count. With a smoothing s in [0, 1] the target is 1 - s of the class and s / classes of each.
inline tensor cross_entropy_loss(tensor const& logits, tensor const& targets, std::int64_t ignored = -100,
                                 double smoothing = 0, std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  tensor const dense = contiguous(targets);  // given twice: parts of the rows see all targets
  return apply(op::cross_entropy{ignored, false, smoothing}, {detail::rows(logits), dense, dense});
}
/// The mean of (x - y)^2.
inline tensor mse_loss(tensor const& x, tensor const& y, std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(op::mse{}, {contiguous(x), contiguous(y)});
}

}  // namespace neap::inline v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/rows.ipp>
#endif
