// Functions of whole rows (the last axis): softmax, layer norm, rms norm, and the losses over rows.
#pragma once

#include <neap/ir/operators/loss.hpp>
#include <neap/ir/operators/row_norm.hpp>
#include <neap/ir/operators/softmax.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap::inline v0 {

namespace detail {
/// x itself if the elements of each row follow one another, else a copy.
template <class Backend>
tensor rows(tensor const& x, std::source_location at) {
  return x.layout(at).has_dense_rows() ? x : apply<Backend>(op::copy{}, {x}, at);
}
}  // namespace detail

/// Positive numbers of sum 1 along an axis.
template <class Backend = host_backend>
tensor softmax(tensor const& x, std::int64_t axis = -1, std::source_location at = std::source_location::current()) {
  if (detail::axis_of(x, axis, "softmax", at) != x.rank(at) - 1)
    return transpose<Backend>(softmax<Backend>(transpose<Backend>(x, axis, -1, at), -1, at), axis, -1, at);
  return apply<Backend>(op::softmax{}, {detail::rows<Backend>(x, at)}, at);
}
template <class Backend = host_backend>
tensor log_softmax(tensor const& x, std::int64_t axis = -1, std::source_location at = std::source_location::current()) {
  if (detail::axis_of(x, axis, "log_softmax", at) != x.rank(at) - 1)
    return transpose<Backend>(log_softmax<Backend>(transpose<Backend>(x, axis, -1, at), -1, at), axis, -1, at);
  return apply<Backend>(op::log_softmax{}, {detail::rows<Backend>(x, at)}, at);
}

/// (x - mean) / sqrt(variance + epsilon) * weight + bias along the last axis.
template <class Backend = host_backend>
tensor layer_norm(tensor const& x, tensor const& weight, tensor const& bias, double epsilon = 1e-5,
                  std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::layer_norm{epsilon}, {detail::rows<Backend>(x, at), weight, bias}, at);
}
/// x / sqrt(mean(x^2) + epsilon) * weight along the last axis.
template <class Backend = host_backend>
tensor rms_norm(tensor const& x, tensor const& weight, double epsilon = 1e-6,
                std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::rms_norm{epsilon}, {detail::rows<Backend>(x, at), weight}, at);
}

/// The mean over rows of -log softmax(logits)[target]: logits (..., classes), targets (...) of i64. Rows whose target is
/// `ignored` do not count.
template <class Backend = host_backend>
tensor cross_entropy_loss(tensor const& logits, tensor const& targets, std::int64_t ignored = -100,
                          std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::cross_entropy{ignored},
                        {detail::rows<Backend>(logits, at), contiguous<Backend>(targets, at)}, at);
}
/// The mean of (x - y)^2.
template <class Backend = host_backend>
tensor mse_loss(tensor const& x, tensor const& y, std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::mse{}, {contiguous<Backend>(x, at), contiguous<Backend>(y, at)}, at);
}

}  // namespace neap::inline v0
