// Large blocks through small ones: consecutive ops of a block are joined into groups, a group is an op of a smaller
// problem, and a solver's answer to that is written out as ops again. One level more of a hierarchy: a solver that takes
// some hundred values serves blocks of thousands.
//
//   neap::in_groups solve{neap::use_gap{}};        // what use_gap takes on goes to it as it is
//   auto const options = solve.front(problem, limits);
//
// Values that only one group touches are inside it: they count as its workspace, at their highest. Those of one group that
// the same other groups read are one value: what a stretch of the forward leaves to its backward is held or dropped as a
// whole. So what keeps the limits in groups keeps them in ops; the way back frees more. HiRemate (ICML 2025) builds its
// clusters so.
#pragma once

#include <neap/blocks/remat_check.hpp>
#include <neap/blocks/remat_facts.hpp>
#include <neap/blocks/remat_sequence.hpp>
#include <neap/plan/remat_problem.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace neap { inline namespace v0 {

/// A problem whose ops are groups of another one's.
struct grouped_remat {
  remat_problem problem;
  std::vector<std::uint32_t> ends;  // of each group: its ops are [ends[g - 1], ends[g]) of the original's
};

/// Groups of at most `size` ops. What may not run again, and the op behind which the block pauses, are groups of their
/// own. O(ops + edges).
grouped_remat group_ops(remat_problem const& p, std::uint32_t size);

/// An answer for groups as one for ops. Law: time is the same, peak and saved bytes are no higher.
remat_answer ungrouped(remat_problem const& p, grouped_remat const& g, remat_answer const& a);

/// A solver for blocks that have too many values for it: in groups, as small as they can be.
template <class Solver>
struct in_groups {
  Solver solver;
  std::size_t max_values = max_remat_values;

  std::vector<remat_answer> front(remat_problem const& p, std::span<remat_limits const> limits) const {
    if (p.values.size() <= max_values || !check(p).ok()) return solver.front(p, limits);
    std::vector<remat_answer> out;
    grouped_remat g;
    for (std::uint32_t size = 2; size < 2 * p.ops.size(); size += 1 + size / 2) {
      g = group_ops(p, size);
      if (g.problem.values.size() <= max_values) break;
    }
    auto const answers = solver.front(g.problem, limits);
    if (answers.size() > limits.size())
      throw_error({"in_groups: the solver gave ", answers.size(), " answers to ", limits.size(), " limits"});
    for (std::size_t k = 0; k < answers.size(); ++k) {
      require_right(g.problem, limits[k], answers[k], "in_groups: the solver");
      out.push_back(ungrouped(p, g, answers[k]));
    }
    return out;
  }
};
template <class Solver>
in_groups(Solver) -> in_groups<Solver>;

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/grouped_remat.ipp>
#endif
