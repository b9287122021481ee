// The exact planner for those who want its answer alone: a program that is compiled apart does not read the search behind
// it, a tenth of the library, in each of its files.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/memory/planner.hpp>
#include <neap/memory/records.hpp>

#include <cstdint>

#if NEAP_READS_BODIES
#include <neap/memory/exact/exact.hpp>
#endif

namespace neap::inline v0 {

namespace detail {

/// `exact` on one thread, of problems without windows, within so many nodes and seconds, whichever end first.
struct exact_placing {
  std::int64_t nodes;
  double seconds;

  memory_plan operator()(memory_problem const& p) const;
};

#if NEAP_READS_BODIES
NEAP_ONCE memory_plan exact_placing::operator()(memory_problem const& p) const {
  return exact{.budget = {.nodes = nodes, .seconds = seconds}}.smallest(p);
}
#endif

}  // namespace detail

}  // namespace neap::inline v0
