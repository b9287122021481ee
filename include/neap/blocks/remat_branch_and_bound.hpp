// The exact solver of recomputation inside a block: branch and bound over phases and sets of living values.
//
// A state is (phase t, what is alive when it begins); its label is the least time that reaches it. Values are dropped as
// late as can be, so a state stands for all its subsets, and a label is beaten by one with more alive and less time. A
// phase is walked op by op: what op t lacks must be made, other ops may run on the way, and where an op does not fit, each
// smallest set of droppable values is a branch. The bound (blocks/remat_facts.hpp) tells what the rest takes at least.
//
// Phases are finished one after the other, each with the best `width` labels; the first passes are narrow and find good
// answers, which cut the wider ones. A pass in which no label had to be left out proves its answer; one that left labels
// out proves the least of their bounds.
//
// An op that runs ahead of its need could mostly run a phase later just as well. Such a branch ends when that is seen:
// when the walk passes the same op a phase later with its inputs alive, room for it, and its output not read yet.
//
// Nor is it worth while to drop some values and make them again (value_partners.hpp).
#pragma once

#include <neap/blocks/remat_budget.hpp>
#include <neap/plan/remat_problem.hpp>

#include <cstddef>

namespace neap { inline namespace v0 {

/// The exact solver; see above. Gives optimal, infeasible (both proved), feasible with its bound, or budget_spent.
/// Up to `max_values` values (inputs that are kept not counted); larger blocks are answered with budget_spent.
struct remat_branch_and_bound {
  remat_budget budget{.work = 20'000'000};
  std::size_t narrow = 32;  ///< labels a phase in the first pass; eight times as many in each further one
  std::size_t widest = std::size_t{1} << 22;  ///< labels a phase in the last pass
  bool drop_beaten = true;                    ///< compare labels by what is alive
  bool run_late = true;                       ///< end branches whose recomputation could be later
  int reprice = 12;                           ///< steps that look for better prices before a state is kept

  static constexpr std::size_t max_values = max_remat_values;

  remat_answer operator()(remat_problem const& p, remat_limits const& limits) const { return improve(p, limits, {}); }
  /// The same, from an answer that is known: it must pass verify(). Law: never slower than it.
  remat_answer improve(remat_problem const& p, remat_limits const& limits, remat_answer const& known) const;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/remat_branch_and_bound.ipp>
#endif
