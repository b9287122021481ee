// The solver of a block to use when nothing is known about it.
#pragma once

#include <neap/blocks/remat_branch_and_bound.hpp>
#include <neap/blocks/remat_budget.hpp>
#include <neap/blocks/remat_neighbourhoods.hpp>
#include <neap/blocks/remat_solver.hpp>
#include <neap/blocks/solver_policy.hpp>
#include <neap/blocks/use_gap.hpp>

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 {

/// The solver to use when nothing is known about the block: a short search over gaps, the exact search's first passes,
/// large neighbourhoods of what these found where nothing is proved yet, and proof as far as the rest of the budget goes.
/// Work counts nodes of the exact search; an evaluation of gaps takes about as long as six.
struct default_remat_solver {
  remat_budget budget{.work = 20'000'000};
  std::uint64_t seed = 1;

  remat_answer operator()(remat_problem const& p, remat_limits const& limits) const {
    detail::budget_watch const watch(budget);
    using policy = detail::solver_policy;
    auto const& shares = p.ops.size() <= policy::small_ops ? policy::small_block : policy::large_block;
    auto const part = [&](std::int64_t work, double of_time) {
      return remat_budget{std::max<std::int64_t>(1, work),
                          std::max(0.0, std::min(budget.seconds * of_time, budget.seconds - watch.seconds()))};
    };
    auto const share = [&](detail::budget_share const& s) { return part(s.work(budget.work), s.seconds); };
    auto const max_moves = policy::gap_moves_an_op * static_cast<std::int64_t>(p.ops.size()) + 1;
    auto best =
        use_gap{part(std::clamp<std::int64_t>(budget.work / policy::nodes_a_gap_move, 1, max_moves), policy::gap_time),
                seed}(p, limits);
    std::int64_t work = 0;
    auto const improve = [&](auto const& solver) {
      if (best.status == remat_status::optimal || best.status == remat_status::infeasible) return;
      work += best.work;
      best = solver.improve(p, limits, best);
    };
    improve(remat_branch_and_bound{share(shares.first_passes)});
    improve(remat_neighbourhoods{share(shares.neighbourhoods), seed + 1});
    improve(remat_branch_and_bound{share(shares.proof)});
    best.work += work;
    return best;
  }
};

}}  // namespace neap::v0
