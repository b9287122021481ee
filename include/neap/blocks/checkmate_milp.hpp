// Checkmate's integer program (Jain et al., MLSys'20) of recomputation inside a block, for any linear_solver.
//
// R[t, i]: op i runs in phase t. S[t, v]: value v is alive when phase t begins. Instead of Checkmate's products for what is
// freed, continuous columns say what is still needed: N[t, v, j] for the j-th reader of v, at least R of that reader, at
// least N of the next one, the last at least S[t + 1, v]. Between two readers a value takes its bytes times the next N.
// That is fewer columns and rows, and the same plans: where R and S are whole, what N allows is what phases do.
#pragma once

#include <neap/blocks/linear_solver.hpp>
#include <neap/blocks/remat_sequence.hpp>
#include <neap/plan/remat_problem.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// The program, and where the answer stands in it.
struct checkmate_program {
  linear_problem program;
  std::vector<std::uint32_t> runs;  ///< the column of R[t, i] at t * (t + 1) / 2 + i, i <= t

  /// The ops of a solution, in order.
  std::vector<std::uint32_t> sequence(std::vector<double> const& values) const;
};

/// Requires a problem that check() passes. O(ops^2) rows of up to O(values) entries. `whole` false: the relaxation, whose
/// least cost is a bound.
checkmate_program make_checkmate_program(remat_problem const& p, remat_limits const& limits, bool whole = true);

/// A linear_solver as a remat_solver. What it proves holds up to the solver's tolerance. An answer that passes a limit
/// within that tolerance is not given: then there is only the bound.
template <class Solver>
struct checkmate {
  static_assert(linear_solver<Solver>,
                "neap: this is no linear solver: it lacks  neap::linear_answer operator()(neap::linear_problem const&) "
                "const");
  Solver solver;

  remat_answer operator()(remat_problem const& p, remat_limits const& limits) const {
    remat_answer a;
    if (auto const ok = check(p); !ok) {
      a.status = remat_status::infeasible;
      a.why = ok.message();
      return a;
    }
    auto const made = make_checkmate_program(p, limits);
    auto const found = solver(made.program);
    if (auto const right = verify(made.program, found); !right)
      throw_error({"checkmate: the linear solver gave a wrong answer: ", right.message()});
    a.why = found.why;
    if (found.status == linear_status::infeasible) {
      a.status = remat_status::infeasible;
      a.lower_bound = linear_problem::unbounded;
      return a;
    }
    double const bound = std::max(found.lower_bound, time_once(p));
    a.lower_bound = bound;
    if (found.status != linear_status::optimal && found.status != linear_status::feasible) return a;
    auto b = answer_of(p, made.sequence(found.values));
    if (b.peak_bytes > limits.peak_bytes || b.saved_bytes > limits.saved_bytes) return a;
    b.lower_bound = std::min(bound, b.time);
    if (found.status == linear_status::optimal) {
      b.status = remat_status::optimal;
      b.lower_bound = b.time;
    }
    return b;
  }
};

/// The least cost of Checkmate's program without wholeness: a bound, from one linear program.
template <linear_solver Solver>
double checkmate_bound(Solver const& solver, remat_problem const& p, remat_limits const& limits) {
  auto const found = solver(make_checkmate_program(p, limits, false).program);
  if (found.status == linear_status::infeasible) return linear_problem::unbounded;
  return std::max(time_once(p), found.lower_bound);
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/checkmate_milp.ipp>
#endif
