// The bodies of <neap/optimize/pareto_front.hpp>.
#pragma once

#include <neap/optimize/pareto_front.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {

NEAP_FUNC bool pareto_front::add(plan_cost p) {
  auto const at = std::lower_bound(points_.begin(), points_.end(), p,
                                   [](plan_cost const& a, plan_cost const& b) { return a.peak_bytes < b.peak_bytes; });
  if (at != points_.begin() && at[-1].latency <= p.latency) return false;  // of the smaller ones the quickest
  if (at != points_.end() && at->peak_bytes == p.peak_bytes && at->latency <= p.latency) return false;
  auto const beaten = std::find_if(at, points_.end(), [&](plan_cost const& q) { return q.latency < p.latency; });
  if (beaten == at) points_.insert(at, p);
  else *at = p, points_.erase(at + 1, beaten);
  return true;
}

}}  // namespace neap::v0
