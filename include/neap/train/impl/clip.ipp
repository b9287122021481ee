// The bodies of <neap/train/clip.hpp>.
#pragma once

#include <neap/train/clip.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC tensor sum_of_squares(std::vector<tensor>& gradients, std::source_location at) {
  tensor total;
  for (auto& g : gradients) {
    if (g.is_empty()) continue;
    g = contiguous(g, at);
    total = total.is_empty() ? apply(op::sum_squares{}, {g}, at) : apply(op::sum_squares{}, {g, total}, at);
  }
  return total;
}

NEAP_FUNC std::vector<tensor> clip_by_norm(std::vector<tensor> gradients, double max_norm, std::source_location at,
                                           tensor total) {
  if (total.is_empty()) total = sum_of_squares(gradients, at);
  if (total.is_empty()) return gradients;
  tensor const factor = apply(op::clip_factor{max_norm}, {total}, at);
  for (auto& g : gradients)
    if (!g.is_empty()) g = apply(op::scale_by{}, {g, factor}, at);
  return gradients;
}

}}  // namespace neap::v0
