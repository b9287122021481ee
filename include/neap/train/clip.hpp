// Clipping of gradients by their global norm (Pascanu et al. 2013): all are scaled by one factor, so that the length of
// the whole is at most a bound.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/ir/operators/update.hpp>
#include <neap/model/functions/movement.hpp>

#include <vector>

namespace neap::inline v0 {

/// The gradients times min(1, max_norm / (norm + 1e-6)), the norm being that of all of them together. Empty ones stay.
NEAP_ONCE std::vector<tensor> clip_by_norm(std::vector<tensor> gradients, double max_norm,
                                           std::source_location at = std::source_location::current()) {
  tensor total;
  for (auto& g : gradients) {
    if (g.is_empty()) continue;
    g = contiguous(g, at);
    total = total.is_empty() ? apply(op::sum_squares{}, {g}, at) : apply(op::sum_squares{}, {g, total}, at);
  }
  if (total.is_empty()) return gradients;
  tensor const factor = apply(op::clip_factor{max_norm}, {total}, at);
  for (auto& g : gradients)
    if (!g.is_empty()) g = apply(op::scale_by{}, {g, factor}, at);
  return gradients;
}

}  // namespace neap::inline v0
