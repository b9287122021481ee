// Losses of single elements: the mean of them, their sum, or one an element (loss_reduction::none), which masks and weights
// can then be multiplied with. Prediction and target have one shape: a column and a row are refused, not broadcast. The
// mean over no elements is a NaN. (Those of whole rows are in rows.hpp.)
#pragma once

#include <neap/ir/operators/loss.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/movement.hpp>
#include <neap/model/functions/reduction.hpp>

namespace neap::inline v0 {

namespace detail {
inline tensor reduced_loss(tensor const& losses, loss_reduction how) {
  return how == loss_reduction::none ? losses : how == loss_reduction::sum ? sum(losses) : mean(losses);
}
/// Targets as they go with x: booleans and whole numbers are cast.
inline tensor targets_for(tensor const& x, tensor const& targets) {
  return is_floating(targets.element()) ? targets : cast(targets, x.element());
}
}  // namespace detail

/// -t log p - (1 - t) log(1 - p) with p = sigmoid(logit), for targets t in [0, 1]; exact for large logits too.
inline tensor binary_cross_entropy_with_logits_loss(tensor const& logits, tensor const& targets,
                                                    loss_reduction how = loss_reduction::mean,
                                                    std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return detail::reduced_loss(apply(op::binary_cross_entropy{}, {logits, detail::targets_for(logits, targets)}), how);
}
/// The same of probabilities p; logarithms count as -100 at least, a p outside [0, 1] gives a NaN.
inline tensor binary_cross_entropy_loss(tensor const& probabilities, tensor const& targets,
                                        loss_reduction how = loss_reduction::mean,
                                        std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  tensor const t = detail::targets_for(probabilities, targets);
  return detail::reduced_loss(apply(op::binary_cross_entropy{true}, {probabilities, t}), how);
}
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
inline tensor kl_divergence_loss(tensor const& log_probabilities, tensor const& targets, kl_divergence_form how = {},
                                 std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  tensor const x = detail::in_full(log_probabilities), t = detail::in_full(targets);
  if (x.shape() != t.shape())
    throw_error(context_access::place(at), {"kl_divergence: shapes differ, ", x.shape(), " and ", t.shape()});
  tensor losses;
  if (how.log_target) {
    losses = exp(t) * (t - x);
  } else {
    tensor const counts = greater(t, 0);
    losses = where(counts, t * (log(where(counts, t, 1)) - x), t * 0);  // a negative target adds 0, a NaN stays
  }
  if (how.reduction != loss_reduction::mean || !how.mean_of_rows || x.rank() == 0)
    return detail::reduced_loss(losses, how.reduction);
  return sum(losses) * (1 / static_cast<double>(x.size(0)));
}
/// d^2 / 2 of each difference d up to delta in absolute value, beyond it delta (|d| - delta / 2).
inline tensor huber_loss(tensor const& x, tensor const& y, double delta = 1, loss_reduction how = loss_reduction::mean,
                         std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return detail::reduced_loss(apply(op::huber{delta}, {x, y}), how);
}
/// huber_loss / beta: d^2 / (2 beta) up to beta in absolute value, beyond it |d| - beta / 2; |d| where beta is 0.
inline tensor smooth_l1_loss(tensor const& x, tensor const& y, double beta = 1,
                             loss_reduction how = loss_reduction::mean,
                             std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  if (x.shape() != y.shape())
    throw_error(context_access::place(at), {"smooth_l1: shapes differ, ", x.shape(), " and ", y.shape()});
  if (beta != 0) return huber_loss(x, y, beta, how) * (1 / beta);
  return detail::reduced_loss(abs(detail::in_full(x) - detail::in_full(y)), how);
}

}  // namespace neap::inline v0
