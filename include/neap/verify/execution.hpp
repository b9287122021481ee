// The second half of the verifier: order, versions, times, waits, places, and the figures that a plan claims. A walk over
// the steps that trusts nothing but the graph's ops, values and layouts.
#pragma once

#include <neap/plan/plan.hpp>
#include <neap/verify/violation.hpp>

#include <cmath>
#include <span>
#include <vector>

namespace neap { inline namespace v0 { namespace detail::plan_check {

inline bool before(seconds_t a, seconds_t b) { return a < b - 1e-9 * std::abs(b) - 1e-15; }
inline bool differ(seconds_t a, seconds_t b) { return before(a, b) || before(b, a); }

/// A plan without its type: what the checks below read.
struct plan_parts {
  op_graph const& g;
  op_graph const& original;
  std::vector<plan_step> const& steps;
  std::vector<plan_buffer> const& buffers;
  std::vector<transfer_wait> const& waits;
  memory_options options;
  bytes_t peak, resident, arena, bound;
  seconds_t latency;
  bool rewritten;                      // some values are computed otherwise than in the original
  std::span<seconds_t const> seconds;  // of each op of g; empty: as long as the plan's steps take
};

/// Reports what is wrong with order, versions, times, waits and places of a plan, and with its figures.
void check_execution(plan_parts const& p, verification& out);

}}}  // namespace neap::v0::detail::plan_check

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/verify/impl/execution.ipp>
#endif
