// Sums, means, variances, extremes, any and all over axes, and running sums along one. No axes mean all of them, negative
// ones count from the end.
#pragma once

#include <neap/ir/operators/reduction.hpp>
#include <neap/model/functions/comparison.hpp>
#include <neap/model/functions/elementwise.hpp>

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

/// Whether any element along axes is true; of none: false. No axes mean all of them.
inline tensor any(tensor const& x, extents const& axes = {}, bool keepdim = false,
                  std::source_location at = std::source_location::current()) {
  detail::require_booleans("any", x, at);
  return apply(op::max_reduce{axes, keepdim}, {x}, at);
}
/// Whether all elements along axes are true; of none: true.
inline tensor all(tensor const& x, extents const& axes = {}, bool keepdim = false,
                  std::source_location at = std::source_location::current()) {
  detail::require_booleans("all", x, at);
  return apply(op::min_reduce{axes, keepdim}, {x}, at);
}

/// The sums along an axis up to each element, that included; from the end back if `reverse`. Floats are added in double;
/// integers and booleans (how many are true so far) give i64.
inline tensor cumsum(tensor const& x, std::int64_t axis = -1, bool reverse = false,
                     std::source_location at = std::source_location::current()) {
  return apply(op::cumsum{axis, reverse}, {x}, at);
}

struct variance_form {
  std::int64_t correction = 1;  // what the number of elements is lessened by: 1 for samples, 0 for a whole population
  bool keepdim = false;
};
/// The mean square of what elements differ from their mean by, along axes: var(x, {1}, {.correction = 0}). A NaN where
/// there are no more elements than the correction.
inline tensor var(tensor const& x, extents const& axes = {}, variance_form how = {},
                  std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  double n = axes.empty() ? static_cast<double>(x.count()) : 1;
  for (auto k : axes) n *= static_cast<double>(x.size(detail::axis_of(x, k, "var", at)));
  tensor const squares = sum(square(x - mean(x, axes, true)), axes, how.keepdim);
  return squares * (1 / std::max(0., n - static_cast<double>(how.correction)));
}
/// sqrt(var). Where all elements are equal it is 0, and so is its gradient.
inline tensor stddev(tensor const& x, extents const& axes = {}, variance_form how = {},
                     std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  tensor const v = var(x, axes, how), differs = not_equal(v, 0);
  return where(differs, sqrt(where(differs, v, 1)), v);  // sqrt never sees a 0, where its slope is infinite
}

}  // namespace neap::inline v0
