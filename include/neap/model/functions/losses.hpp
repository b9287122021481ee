// Losses of single elements: the mean of them, their sum, or one an element (loss_reduction::none), which masks and weights
// can then be multiplied with. Prediction and target have one shape: a column and a row are refused, not broadcast. The
// mean over no elements is a NaN. (Those of whole rows are in rows.hpp.) Losses of bf16 and f16 are computed in f32 and
// rounded once.
#pragma once

#include <neap/core/kernel_options.hpp>
#include <neap/ir/operators/loss.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/movement.hpp>
#include <neap/model/functions/picking.hpp>
#include <neap/model/functions/reduction.hpp>

namespace neap { inline namespace v0 {

namespace detail {
tensor reduced_loss(tensor const& losses, loss_reduction how);
/// Targets as they go with x: booleans and whole numbers are cast.
tensor targets_for(tensor const& x, tensor const& targets);
/// Whether a loss is of bf16 or f16 outside of mixed precision.
bool are_low(tensor const& x, tensor const& targets);
/// Such a loss, computed in f32 and rounded once.
template <class Loss, class... How>
tensor rounded_loss(Loss const& loss, tensor const& x, tensor const& targets, How... how) {
  auto const at = std::source_location::current();
  return cast(loss(cast(x, dtype::f32), cast(targets, dtype::f32), how..., at), x.element());
}
}  // namespace detail

/// -t log p - (1 - t) log(1 - p) with p = sigmoid(logit), for targets t in [0, 1]; exact for large logits too.
tensor binary_cross_entropy_with_logits_loss(tensor const& logits, tensor const& targets,
                                             loss_reduction how = loss_reduction::mean,
                                             std::source_location at = std::source_location::current());
/// The same of probabilities p; logarithms count as -100 at least, a p outside [0, 1] gives a NaN.
tensor binary_cross_entropy_loss(tensor const& probabilities, tensor const& targets,
                                 loss_reduction how = loss_reduction::mean,
                                 std::source_location at = std::source_location::current());
/// Targets of kl_divergence_loss, and what its mean divides by.
struct kl_divergence_form {
  loss_reduction reduction = loss_reduction::mean;
  bool log_target = false;  // targets are given as logarithms, too
  bool mean_of_rows =
      true;  // the mean is the sum over the extent of axis 0: the mean of the rows' divergences; false: over
             // all elements
};
/// sum of t (log t - x) over elements, for x = log q: the divergence of the distribution t from q. A target of 0 adds 0.
/// Prediction and target have one shape.
tensor kl_divergence_loss(tensor const& log_probabilities, tensor const& targets, kl_divergence_form how = {},
                          std::source_location at = std::source_location::current());
/// d^2 / 2 of each difference d up to delta in absolute value, beyond it delta (|d| - delta / 2).
tensor huber_loss(tensor const& x, tensor const& y, double delta = 1, loss_reduction how = loss_reduction::mean,
                  std::source_location at = std::source_location::current());
/// huber_loss / beta: d^2 / (2 beta) up to beta in absolute value, beyond it |d| - beta / 2; |d| where beta is 0.
tensor smooth_l1_loss(tensor const& x, tensor const& y, double beta = 1, loss_reduction how = loss_reduction::mean,
                      std::source_location at = std::source_location::current());

/// |x - y|
tensor l1_loss(tensor const& x, tensor const& y, loss_reduction how = loss_reduction::mean,
               std::source_location at = std::source_location::current());
/// -x[target] of each row of log probabilities (..., classes), targets (...) of i64. Rows whose target is `ignored` are 0,
/// and do not count in the mean.
tensor nll_loss(tensor const& log_probabilities, tensor const& targets, std::int64_t ignored = -100,
                loss_reduction how = loss_reduction::mean, std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/losses.ipp>
#endif
