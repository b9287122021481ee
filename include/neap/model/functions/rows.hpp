// Functions of whole rows (the last axis): softmax, layer norm, rms norm, and the losses over rows.
#pragma once

#include <neap/ir/operators/loss.hpp>
#include <neap/ir/operators/row_norm.hpp>
#include <neap/ir/operators/softmax.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap { inline namespace v0 {

namespace detail {
/// x itself if the elements of each row follow one another, else a copy.
tensor rows(tensor const& x);
}  // namespace detail

/// Positive numbers of sum 1 along an axis.
tensor softmax(tensor const& x, std::int64_t axis = -1, std::source_location at = std::source_location::current());
tensor log_softmax(tensor const& x, std::int64_t axis = -1, std::source_location at = std::source_location::current());

/// (x - mean) / sqrt(variance + epsilon) * weight + bias along the last axis.
tensor layer_norm(tensor const& x, tensor const& weight, tensor const& bias, double epsilon = 1e-5,
                  std::source_location at = std::source_location::current());
/// x / sqrt(mean(x^2) + epsilon) * weight along the last axis.
tensor rms_norm(tensor const& x, tensor const& weight, double epsilon = 1e-6,
                std::source_location at = std::source_location::current());

/// The mean over rows of -log softmax(logits)[target]: logits (..., classes), targets (...) of i64. Rows whose target is
/// `ignored` do not count. With a smoothing s in [0, 1] the target is 1 - s of the class and s / classes of each.
tensor cross_entropy_loss(tensor const& logits, tensor const& targets, std::int64_t ignored = -100,
                          double smoothing = 0, std::source_location at = std::source_location::current());
/// The mean of (x - y)^2.
tensor mse_loss(tensor const& x, tensor const& y, std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/rows.ipp>
#endif
