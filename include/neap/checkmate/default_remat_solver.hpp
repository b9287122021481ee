// The solver of a block to use when nothing is known about it.
#pragma once

#include <neap/checkmate/remat_branch_and_bound.hpp>
#include <neap/solve/remat_budget.hpp>
#include <neap/solve/remat_solver.hpp>
#include <neap/solve/solver_policy.hpp>
#include <neap/solve/use_gap.hpp>

#include <algorithm>
#include <cstdint>

namespace neap::inline v0 {

/// A short search over gaps, then the exact search from what that
/// found. Work counts nodes of the exact search.
struct default_remat_solver {
  remat_budget budget{.work = 20'000'000};
  std::uint64_t seed = 1;

  remat_answer operator()(remat_problem const& p, remat_limits const& limits) const {
    using policy = detail::solver_policy;
    detail::budget_watch const watch(budget);
    auto const most_looks = policy::looks_an_op * static_cast<std::int64_t>(p.ops.size()) + 1;
    auto const looks = std::clamp<std::int64_t>(budget.work / policy::nodes_a_look, 1, most_looks);
    auto const first = use_gap{{looks, budget.seconds * policy::seconds_of_looks}, seed}(p, limits);
    if (first.status == remat_status::optimal || first.status == remat_status::infeasible) return first;
    remat_budget const rest{std::max<std::int64_t>(1, budget.work - looks),
                            std::max(0.0, budget.seconds - watch.seconds())};
    auto best = remat_branch_and_bound{rest}.improve(p, limits, first);
    best.work += first.work;
    return best;
  }
};

}  // namespace neap::inline v0
