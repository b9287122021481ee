// Sums, means and extremes over axes; no axes mean all of them, negative ones count from the end.
#pragma once

#include <neap/ir/operators/reduction.hpp>
#include <neap/model/apply.hpp>

namespace neap::inline v0 {

template <class Backend = host_backend>
tensor sum(tensor const& x, extents const& axes = {}, bool keepdim = false,
           std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::sum{axes, keepdim}, {x}, at);
}
template <class Backend = host_backend>
tensor mean(tensor const& x, extents const& axes = {}, bool keepdim = false,
            std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::mean{axes, keepdim}, {x}, at);
}
/// The largest element along axes.
template <class Backend = host_backend>
tensor max(tensor const& x, extents const& axes = {}, bool keepdim = false,
           std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::max_reduce{axes, keepdim}, {x}, at);
}
template <class Backend = host_backend>
tensor min(tensor const& x, extents const& axes = {}, bool keepdim = false,
           std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::min_reduce{axes, keepdim}, {x}, at);
}

}  // namespace neap::inline v0
