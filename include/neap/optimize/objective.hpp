// What a search wants: limits made absolute, and how far a candidate is from them.
#pragma once

#include <neap/plan/limits.hpp>
#include <neap/plan/simulation.hpp>

#include <algorithm>
#include <span>

namespace neap { inline namespace v0 {

/// Where no plan fits the limit of memory, plans that need up to so much more than the smallest one count as equally
/// small, and the quickest of them is the answer: a hundredth of memory that is missed anyway is worth no time.
inline constexpr double near_smallest = 0.01;

/// Limits in absolute numbers. With a memory limit the latency is made small under it; with a latency limit alone, the
/// peak is; with both, both must hold and the latency is made small.
struct objective {
  /// Sums of the same times in another order differ in their last bits: so much of a latency is no difference.
  static constexpr double rounding = 1e-12;

  bytes_t memory = INT64_MAX;
  seconds_t latency = 1e300;  // the limit, and what sums may lose by rounding
  bool limits_memory = false, limits_latency = false;

  static objective resolve(memory_limit m, latency_limit l, simulation const& original) {
    objective o;
    o.limits_memory = m.bytes >= 0 || m.ratio >= 0;
    o.limits_latency = l.seconds >= 0 || l.ratio >= 0;
    o.memory = m.resolve(original.peak_bytes);
    o.latency = l.resolve(original.latency) * (1 + rounding);
    return o;
  }
  /// The smallest peak is wanted, and there is latency to spend on it.
  bool spends_latency() const { return limits_latency && !limits_memory; }
  bool fits(plan_cost const& v) const { return v.peak_bytes <= memory && v.latency <= latency; }
  /// Whether a candidate that fits is better than another one that fits: faster, or smaller where only latency is
  /// limited; the other number decides ties.
  bool better(plan_cost const& a, plan_cost const& b) const {
    if (limits_memory) return a.latency < b.latency || (a.latency == b.latency && a.peak_bytes < b.peak_bytes);
    return a.peak_bytes < b.peak_bytes || (a.peak_bytes == b.peak_bytes && a.latency < b.latency);
  }
  /// Whether one would be a better answer than the other: it fits and is better; or, where nothing fits, it is nearer to
  /// the limit of latency, or within it as the other is, and smaller, or as small and quicker.
  bool beats(plan_cost const& a, plan_cost const& b) const {
    bool const fitting = fits(a);
    if (fits(b)) return fitting && better(a, b);
    if (fitting) return true;
    auto const late = [&](plan_cost const& v) { return std::max(v.latency, latency); };
    if (late(a) < late(b) * (1 - rounding)) return true;
    if (late(b) < late(a) * (1 - rounding)) return false;
    return a.peak_bytes < b.peak_bytes || (a.peak_bytes == b.peak_bytes && a.latency < b.latency);
  }
};

/// Bytes above a target, summed over positions: falls with every step towards it, also where the peak does not yet.
inline double excess_bytes(std::span<bytes_t const> bytes_at, bytes_t target) {
  double sum = 0;
  for (auto b : bytes_at)
    if (b > target) sum += static_cast<double>(b - target);
  return sum;
}

}}  // namespace neap::v0
