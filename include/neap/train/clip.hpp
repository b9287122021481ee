// Clipping of gradients by their global norm (Pascanu et al. 2013): all are scaled by one factor, so that the length of
// the whole is at most a bound.
#pragma once

#include <neap/ir/operators/update.hpp>
#include <neap/model/functions/movement.hpp>

#include <vector>

namespace neap { inline namespace v0 {

/// The sum of the squares of all gradients, f64, finite where they are; empty if there are none. Makes them dense.
tensor sum_of_squares(std::vector<tensor>& gradients, std::source_location at = std::source_location::current());
/// The gradients times min(1, max_norm / (norm + 1e-6)), the norm being that of all of them together. Empty ones stay.
/// `total`: the sum of their squares, if it is known.
std::vector<tensor> clip_by_norm(std::vector<tensor> gradients, double max_norm,
                                 std::source_location at = std::source_location::current(), tensor total = {});

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/clip.ipp>
#endif
