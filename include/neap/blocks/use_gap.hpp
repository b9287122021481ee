// Search over use-gaps: for each value and each pair of its consecutive uses, how long it is held after the one and from
// when on it is held for the other (use_intervals.hpp). A few hundred small integers describe a block where
// Checkmate's program has thousands of binaries, and what must run again follows from them.
//
// A change of one gap touches the phases between its old and its new ends; only these are counted again. Simulated
// annealing, deterministic by its seed. Every state that is visited is held against every pair of limits given, so
// that one run gives the answers to all of them: the options of a block.
#pragma once

#include <neap/blocks/remat_budget.hpp>
#include <neap/plan/remat_problem.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace neap { inline namespace v0 {

/// The search; see above. Work counts evaluations. Never proves that nothing fits; calls an answer optimal where it meets
/// the bound of blocks/remat_facts.hpp. Up to max_remat_values values.
struct use_gap {
  remat_budget budget{.work = 200'000};  ///< for all limits together
  std::uint64_t seed = 1;

  remat_answer operator()(remat_problem const& p, remat_limits const& limits) const {
    return front(p, std::span(&limits, 1)).front();
  }
  /// The same, from an answer that is known: it must pass verify(). Law: never slower than it.
  remat_answer improve(remat_problem const& p, remat_limits const& limits, remat_answer const& known) const;
  /// One answer for each of these limits, in their order, from one search.
  std::vector<remat_answer> front(remat_problem const& p, std::span<remat_limits const> limits) const {
    return search(p, limits, {});
  }

 private:
  std::vector<remat_answer> search(remat_problem const& p, std::span<remat_limits const> limits,
                                   remat_answer const& known) const;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/use_gap.ipp>
#endif
