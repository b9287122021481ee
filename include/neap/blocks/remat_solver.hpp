// The concept that every solver of recomputation inside a block meets, and solvers out of solvers: each is a remat_solver
// itself and a value.
//
//   constexpr auto solver = seed_then_improve(use_gap{.budget = {.work = 50'000}}, remat_branch_and_bound{});
//   auto const answer = solver(block, {.peak_bytes = 64_MiB});
#pragma once

#include <neap/blocks/remat_check.hpp>
#include <neap/plan/best_of.hpp>
#include <neap/plan/remat_problem.hpp>

#include <algorithm>
#include <concepts>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// A function object from a block and limits to an answer.
/// Promise: an answer with steps passes verify(problem, limits, answer); `optimal`, `infeasible` and `lower_bound` are
/// proved; faulty problems give infeasible and say why; the same answer each time, if no clock ended the search.
template <class S>
concept remat_solver = requires(S const& solver, remat_problem const& problem, remat_limits const& limits) {
  { solver(problem, limits) } -> std::same_as<remat_answer>;
};

/// A solver that can start from an answer. Law: improve(p, l, known) is never slower than `known`.
template <class S>
concept remat_improver = remat_solver<S> && requires(S const& solver, remat_problem const& problem,
                                                     remat_limits const& limits, remat_answer const& known) {
  { solver.improve(problem, limits, known) } -> std::same_as<remat_answer>;
};

namespace detail {

/// Keeps the better of two answers to one question, and what both proved.
void keep_better(remat_answer& best, remat_answer other);

/// Throws neap::error where one of two right answers to a problem without faults refutes what the other says is proved.
/// Proofs speak of answers in phases.
void require_agreement(remat_problem const& p, remat_answer const& a, remat_answer const& b, std::string_view who);

template <bool StopAtProof, class... Solvers>
struct several_remat {
  std::tuple<Solvers...> solvers;
  remat_answer operator()(remat_problem const& p, remat_limits const& limits) const {
    remat_answer best;
    bool first = true;
    auto const run = [&](auto const& solver) {
      remat_answer a = solver(p, limits);
      auto const* who = StopAtProof ? "first_optimal: a solver" : "best_of: a solver";
      require_right(p, limits, a, who);
      if (!first) require_agreement(p, best, a, who);
      if (first) best = std::move(a);
      else keep_better(best, std::move(a));
      first = false;
      return StopAtProof && (best.status == remat_status::optimal || best.status == remat_status::infeasible);
    };
    std::apply([&](auto const&... each) { static_cast<void>((run(each) || ...)); }, solvers);
    return best;
  }
};

template <class Seed, class Improver>
struct seeded_remat {
  Seed seed;
  Improver improver;
  remat_answer operator()(remat_problem const& p, remat_limits const& limits) const {
    remat_answer known = seed(p, limits);
    require_right(p, limits, known, "seed_then_improve: the seed");
    if (known.status == remat_status::optimal || known.status == remat_status::infeasible) return known;
    remat_answer best = improver.improve(p, limits, known);
    require_right(p, limits, best, "seed_then_improve: the second");
    require_agreement(p, known, best, "seed_then_improve: one of both");
    keep_better(best, std::move(known));
    return best;
  }
};

}  // namespace detail

/// The least time of all. Law: best_of(a) gives a's answers.
template <remat_solver... Solvers>
  requires(sizeof...(Solvers) > 0)
constexpr auto best_of(Solvers... solvers) {
  return detail::several_remat<false, Solvers...>{{solvers...}};
}

/// One after the other until something is proved (optimal, or that nothing fits), else the best of all.
template <remat_solver... Solvers>
  requires(sizeof...(Solvers) > 0)
constexpr auto first_optimal(Solvers... solvers) {
  return detail::several_remat<true, Solvers...>{{solvers...}};
}

/// The second starts from the first one's answer. Law: never slower than the first, whatever the second is.
template <class Seed, class Improver>
constexpr auto seed_then_improve(Seed seed, Improver improver) {
  static_assert(remat_solver<Seed>,
                "neap: the first is no solver: it lacks  neap::remat_answer operator()(neap::remat_problem const&, "
                "neap::remat_limits const&) const");
  static_assert(
      remat_improver<Improver>,
      "neap: the second is no solver that starts from an answer: it lacks  neap::remat_answer "
      "improve(neap::remat_problem const&, neap::remat_limits const&, neap::remat_answer const& known) const  "
      "or an operator() of the first two");
  return detail::seeded_remat<Seed, Improver>{seed, improver};
}

/// The options of a block: of these answers those that no other beats in time, peak and saved bytes at once, the quickest
/// first. Of equal ones the first.
std::vector<remat_answer> pareto(std::vector<remat_answer> answers);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/remat_solver.ipp>
#endif
