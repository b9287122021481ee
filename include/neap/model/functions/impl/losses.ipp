// The bodies of <neap/model/functions/losses.hpp>.
#pragma once

#include <neap/model/functions/losses.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor reduced_loss(tensor const& losses, loss_reduction how) {
  return how == loss_reduction::none ? losses : how == loss_reduction::sum ? sum(losses) : mean(losses);
}

NEAP_FUNC bool are_low(tensor const& x, tensor const& targets) {
  if (context_access::precision() || x.is_empty() || targets.is_empty() || !is_low(x.element())) return false;
  return targets.element() == x.element() || !is_floating(targets.element());
}

NEAP_FUNC tensor targets_for(tensor const& x, tensor const& targets) {
  return is_floating(targets.element()) ? targets : cast(targets, x.element());
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor binary_cross_entropy_with_logits_loss(tensor const& logits, tensor const& targets, loss_reduction how,
                                                       std::source_location at) {
  place_scope const here(at, "binary_cross_entropy_with_logits");
  if (detail::are_low(logits, targets))
    return detail::rounded_loss(binary_cross_entropy_with_logits_loss, logits, targets, how);
  return detail::reduced_loss(apply(op::binary_cross_entropy{}, {logits, detail::targets_for(logits, targets)}), how);
}

NEAP_FUNC tensor binary_cross_entropy_loss(tensor const& probabilities, tensor const& targets, loss_reduction how,
                                           std::source_location at) {
  place_scope const here(at, "binary_cross_entropy");
  if (detail::are_low(probabilities, targets))
    return detail::rounded_loss(binary_cross_entropy_loss, probabilities, targets, how);
  tensor const t = detail::targets_for(probabilities, targets);
  return detail::reduced_loss(apply(op::binary_cross_entropy{true}, {probabilities, t}), how);
}

NEAP_FUNC tensor kl_divergence_loss(tensor const& log_probabilities, tensor const& targets, kl_divergence_form how,
                                    std::source_location at) {
  place_scope const here(at, "kl_divergence");
  if (detail::are_low(log_probabilities, targets))
    return detail::rounded_loss(kl_divergence_loss, log_probabilities, targets, how);
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

NEAP_FUNC tensor huber_loss(tensor const& x, tensor const& y, double delta, loss_reduction how,
                            std::source_location at) {
  place_scope const here(at, "huber");
  if (detail::are_low(x, y)) return detail::rounded_loss(huber_loss, x, y, delta, how);
  return detail::reduced_loss(apply(op::huber{delta}, {x, y}), how);
}

NEAP_FUNC tensor smooth_l1_loss(tensor const& x, tensor const& y, double beta, loss_reduction how,
                                std::source_location at) {
  place_scope const here(at, "smooth_l1");
  if (detail::are_low(x, y)) return detail::rounded_loss(smooth_l1_loss, x, y, beta, how);
  if (x.shape() != y.shape())
    throw_error(context_access::place(at), {"smooth_l1: shapes differ, ", x.shape(), " and ", y.shape()});
  if (beta != 0) return huber_loss(x, y, beta, how) * (1 / beta);
  return l1_loss(x, y, how);
}

NEAP_FUNC tensor l1_loss(tensor const& x, tensor const& y, loss_reduction how, std::source_location at) {
  place_scope const here(at, "l1");
  if (detail::are_low(x, y)) return detail::rounded_loss(l1_loss, x, y, how);
  if (x.shape() != y.shape())
    throw_error(context_access::place(at), {"l1: shapes differ, ", x.shape(), " and ", y.shape()});
  return detail::reduced_loss(abs(detail::in_full(x) - detail::in_full(y)), how);
}

NEAP_FUNC tensor nll_loss(tensor const& log_probabilities, tensor const& targets, std::int64_t ignored,
                          loss_reduction how, std::source_location at) {
  place_scope const here(at, "nll");
  if (detail::are_low(log_probabilities, targets))
    return cast(nll_loss(cast(log_probabilities, dtype::f32), targets, ignored, how), log_probabilities.element());
  tensor const counts = not_equal(targets, static_cast<double>(ignored));
  tensor const picked = gather(log_probabilities, unsqueeze(where(counts, targets, 0), -1), -1);
  tensor const losses = where(counts, neg(detail::in_full(squeeze(picked, -1))), 0);
  if (how != loss_reduction::mean) return detail::reduced_loss(losses, how);
  return sum(losses) / sum(cast(counts, losses.element()));
}

}}  // namespace neap::v0
