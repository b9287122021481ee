// What memory costs in time: of many candidates those that no other beats in both.
#pragma once

#include <neap/plan/simulation.hpp>

#include <cstddef>
#include <vector>

namespace neap { inline namespace v0 {

/// The points that no other is at least as good as in both peak and latency: of rising peak and falling latency. Does not
/// depend on the order in which points came.
class pareto_front {
 public:
  /// Whether the point is one of the front now; those that it beats leave. A point that is there already does not count
  /// again. O(log size) for a point that is beaten, O(size) for one that enters.
  bool add(plan_cost p);
  std::vector<plan_cost> const& points() const& { return points_; }
  std::vector<plan_cost> points() && { return std::move(points_); }

 private:
  std::vector<plan_cost> points_;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/pareto_front.ipp>
#endif
