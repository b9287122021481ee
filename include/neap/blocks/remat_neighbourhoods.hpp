// Large neighbourhoods of an answer (Shaw, CP'98), each searched by the exact search: a few values are free, of all others
// it is settled in which phases they are alive. What is settled makes the problem small: a value held across a phase is
// one more input of the phase's op, and one that is not held need not be thought of.
//
// Free are values near each other in the graph, values made one after the other, values taken anywhere, or all of them in
// a stretch of phases. Neighbourhoods grow where they are searched to the end, and shrink where that takes too long.
#pragma once

#include <neap/blocks/remat_branch_and_bound.hpp>
#include <neap/blocks/remat_budget.hpp>
#include <neap/plan/remat_problem.hpp>

#include <cstdint>

namespace neap { inline namespace v0 {

/// The search; see above. Proves nothing but what the bound of blocks/remat_facts.hpp says. Work counts nodes of the exact
/// search. Up to max_remat_values values.
struct remat_neighbourhoods {
  remat_budget budget{.work = 5'000'000};
  std::uint64_t seed = 1;
  std::int64_t patience = 60;  ///< neighbourhoods in a row without gain that end the search

  /// From what a narrow exact search finds.
  remat_answer operator()(remat_problem const& p, remat_limits const& limits) const {
    auto const first = remat_branch_and_bound{.budget = budget, .widest = 64}(p, limits);
    return has_steps(first) ? improve(p, limits, first) : first;
  }
  /// From an answer that is known: it must pass verify(). Law: never slower than it.
  remat_answer improve(remat_problem const& p, remat_limits const& limits, remat_answer const& known) const;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/remat_neighbourhoods.ipp>
#endif
