// What memory costs in time: of many candidates those that no other beats in both.
#pragma once

#include <neap/core/units.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace neap::inline v0 {

/// What a candidate comes to.
struct plan_cost {
  bytes_t peak_bytes = 0;
  seconds_t latency = 0;
  friend bool operator==(plan_cost const&, plan_cost const&) = default;
};

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

inline bool pareto_front::add(plan_cost p) {
  auto const at = std::lower_bound(points_.begin(), points_.end(), p,
                                   [](plan_cost const& a, plan_cost const& b) { return a.peak_bytes < b.peak_bytes; });
  if (at != points_.begin() && at[-1].latency <= p.latency) return false;  // of the smaller ones the quickest
  if (at != points_.end() && at->peak_bytes == p.peak_bytes && at->latency <= p.latency) return false;
  auto const beaten = std::find_if(at, points_.end(), [&](plan_cost const& q) { return q.latency < p.latency; });
  if (beaten == at) points_.insert(at, p);
  else *at = p, points_.erase(at + 1, beaten);
  return true;
}

}  // namespace neap::inline v0
