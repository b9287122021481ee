// The planner for records that the default one leaves loose: the exact search, then a longer improvement where that has not
// met the load bound, and the better of both. For those who want the answer alone: a program that is compiled apart does
// not read the search behind it, a tenth of the library, in each of its files.
#pragma once

#include <neap/memory/planner.hpp>
#include <neap/memory/records.hpp>

#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// `exact` on one thread, of problems without windows, within so many nodes, of some hundred records each, and half of so
/// many seconds. Where that has not met the load bound, as many nodes and seconds again for a longer improvement than the
/// default planner's, of 5 placements a node, which take about as long. Never worse than that planner, if there are
/// seconds for it. The plan's work is in these nodes: at most twice as many as are granted.
struct exact_placing {
  std::int64_t nodes;
  double seconds;

  memory_plan operator()(memory_problem const& p) const;
};

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/impl/exact_placing.ipp>
#endif
