// The solver of a block to use when nothing is known about it.
#pragma once

#include <neap/checkmate/remat_branch_and_bound.hpp>
#include <neap/checkmate/remat_neighbourhoods.hpp>
#include <neap/solve/remat_budget.hpp>
#include <neap/solve/remat_solver.hpp>
#include <neap/solve/use_gap.hpp>

#include <algorithm>
#include <cstdint>

namespace neap::inline v0 {

/// The solver to use when nothing is known about the block: a short search over gaps, the exact search's first passes,
/// large neighbourhoods of what these found where nothing is proved yet, and proof as far as the rest of the budget goes.
/// Work counts nodes of the exact search; an evaluation of gaps takes about as long as six.
struct default_remat_solver {
  remat_budget budget{.work = 20'000'000};
  std::uint64_t seed = 1;

  remat_answer operator()(remat_problem const& p, remat_limits const& limits) const {
    detail::budget_watch const watch(budget);
    std::int64_t work = 0;
    auto const part = [&](std::int64_t share, double of_time) {
      return remat_budget{std::max<std::int64_t>(1, share),
                          std::max(0.0, std::min(budget.seconds * of_time, budget.seconds - watch.seconds()))};
    };
    auto const proved = [](remat_answer const& a) {
      return a.status == remat_status::optimal || a.status == remat_status::infeasible;
    };
    bool const small = p.ops.size() <= 45;
    auto const looks = std::clamp<std::int64_t>(budget.work / 60, 1, 500 * static_cast<std::int64_t>(p.ops.size()) + 1);
    auto best = use_gap{part(looks, 0.1), seed}(p, limits);
    for (int stage = 0; stage < 3 && !proved(best); ++stage) {
      work += best.work;
      // What is small is mostly proved at once.
      if (stage == 0)
        best = small ? remat_branch_and_bound{part(budget.work / 4 * 3, 0.85)}.improve(p, limits, best)
                     : remat_branch_and_bound{part(budget.work / 8, 0.15)}.improve(p, limits, best);
      if (stage == 1)
        best = remat_neighbourhoods{part(budget.work / (small ? 12 : 3), 0.3), seed + 1}.improve(p, limits, best);
      if (stage == 2) best = remat_branch_and_bound{part(budget.work / (small ? 12 : 2), 1)}.improve(p, limits, best);
    }
    best.work += work;
    return best;
  }
};

}  // namespace neap::inline v0
