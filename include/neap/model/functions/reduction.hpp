// Sums, means and extremes over axes; no axes mean all of them, negative ones count from the end.
#pragma once

#include <neap/ir/operators/reduction.hpp>
#include <neap/model/apply.hpp>

namespace neap::inline v0 {

inline tensor sum(tensor const& x, extents const& axes = {}, bool keepdim = false,
                  std::source_location at = std::source_location::current()) {
  return apply(op::sum{axes, keepdim}, {x}, at);
}
inline tensor mean(tensor const& x, extents const& axes = {}, bool keepdim = false,
                   std::source_location at = std::source_location::current()) {
  return apply(op::mean{axes, keepdim}, {x}, at);
}
/// The largest element along axes.
inline tensor max(tensor const& x, extents const& axes = {}, bool keepdim = false,
                  std::source_location at = std::source_location::current()) {
  return apply(op::max_reduce{axes, keepdim}, {x}, at);
}
inline tensor min(tensor const& x, extents const& axes = {}, bool keepdim = false,
                  std::source_location at = std::source_location::current()) {
  return apply(op::min_reduce{axes, keepdim}, {x}, at);
}

}  // namespace neap::inline v0
