// Clipping of gradients by their global norm (Pascanu et al. 2013): all are scaled by one factor, so that the length of
// the whole is at most a bound.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/ir/operators/update.hpp>
#include <neap/model/functions/movement.hpp>

#include <vector>

namespace neap::inline v0 {

/// The sum of the squares of all gradients, f64, finite where they are; empty if there are none. Makes them dense.
NEAP_ONCE tensor sum_of_squares(std::vector<tensor>& gradients,
                                std::source_location at = std::source_location::current()) {
  tensor total;
  for (auto& g : gradients) {
    if (g.is_empty()) continue;
    g = contiguous(g, at);
    total = total.is_empty() ? apply(op::sum_squares{}, {g}, at) : apply(op::sum_squares{}, {g, total}, at);
  }
  return total;
}
/// The gradients times min(1, max_norm / (norm + 1e-6)), the norm being that of all of them together. Empty ones stay.
/// `total`: the sum of their squares, if it is known.
NEAP_ONCE std::vector<tensor> clip_by_norm(std::vector<tensor> gradients, double max_norm,
                                           std::source_location at = std::source_location::current(),
                                           tensor total = {}) {
  if (total.is_empty()) total = sum_of_squares(gradients, at);
  if (total.is_empty()) return gradients;
  tensor const factor = apply(op::clip_factor{max_norm}, {total}, at);
  for (auto& g : gradients)
    if (!g.is_empty()) g = apply(op::scale_by{}, {g, factor}, at);
  return gradients;
}

}  // namespace neap::inline v0
