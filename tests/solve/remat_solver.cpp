#include <neap/solve/remat_solver.hpp>

#include <neap/solve/remat_check.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../support/message.hpp"
#include "remat_blocks.hpp"

using namespace neap;

namespace {

/// Runs everything once, or gives up.
struct once {
  remat_answer operator()(remat_problem const& p, remat_limits const& limits) const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < p.ops.size(); ++i) all.push_back(i);
    auto a = answer_of(p, all);
    a.status = remat_status::optimal;
    a.lower_bound = a.time;
    if (a.peak_bytes <= limits.peak_bytes && a.saved_bytes <= limits.saved_bytes) return a;
    remat_answer nothing;
    nothing.lower_bound = a.time;
    return nothing;
  }
};
struct no_solver {
  double operator()(remat_problem const&, remat_limits const&) const { return 0; }
};

constexpr use_gap quick{.budget = {.work = 300}};
static_assert(remat_solver<once> && remat_solver<use_gap> && remat_solver<remat_branch_and_bound>);
static_assert(remat_solver<default_remat_solver> && !remat_solver<no_solver> && !remat_solver<int>);
static_assert(remat_improver<remat_branch_and_bound> && remat_improver<use_gap> && !remat_improver<once>);
static_assert(remat_solver<decltype(best_of(once{}, quick))>);
static_assert(remat_solver<decltype(first_optimal(once{}, quick, remat_branch_and_bound{}))>);
static_assert(remat_solver<decltype(seed_then_improve(once{}, remat_branch_and_bound{}))>);

}  // namespace

TEST_CASE("laws of the combinators") {
  random_stream draw(5);
  int proved = 0, improved = 0;
  for (int round = 0; round < 400; ++round) {
    auto const p = testing::random_block(draw, 10);
    auto const high = testing::peak_once(p), alone = testing::largest_op(p);
    remat_limits const limits{high - draw.below(static_cast<std::uint32_t>(high - alone) + 2)};
    CAPTURE(round);
    auto const a = quick(p, limits), same = best_of(quick)(p, limits);
    CHECK((a.steps == same.steps && a.status == same.status && a.lower_bound == same.lower_bound));
    auto const exact = remat_branch_and_bound{}(p, limits);
    for (auto const& b : {best_of(quick, once{})(p, limits), best_of(once{}, quick)(p, limits)}) {
      CHECK(verify(p, limits, b).ok());
      if (has_steps(a)) CHECK(b.time <= a.time);
    }
    for (auto const& b :
         {best_of(quick, remat_branch_and_bound{})(p, limits),
          first_optimal(once{}, quick, remat_branch_and_bound{})(p, limits),
          seed_then_improve(quick, remat_branch_and_bound{})(p, limits),
          seed_then_improve(once{}, remat_branch_and_bound{})(p, limits), default_remat_solver{}(p, limits)}) {
      auto const right = verify(p, limits, b);
      CHECK_MESSAGE(right.ok(), right.message());
      CHECK(b.status == exact.status);
      if (has_steps(exact)) CHECK(b.time == doctest::Approx(exact.time).epsilon(1e-9));
    }
    proved += exact.status == remat_status::optimal;
    improved += has_steps(exact) && (!has_steps(a) || exact.time < a.time - 1e-9);
  }
  CHECK(proved > 100);
  CHECK(improved > 0);
}

TEST_CASE("first_optimal stops at a proof") {
  auto const p = testing::skip_chain(6, 3, 1);
  int asked = 0;
  auto const counting = [&](remat_problem const& q, remat_limits const& l) { return ++asked, once{}(q, l); };
  CHECK(first_optimal(once{}, counting)(p, {}).status == remat_status::optimal);
  CHECK(asked == 0);
  CHECK(best_of(once{}, counting)(p, {}).status == remat_status::optimal);
  CHECK(asked == 1);
  CHECK(first_optimal(remat_branch_and_bound{}, counting)(p, {.peak_bytes = 1}).status == remat_status::infeasible);
  CHECK(asked == 1);
}

TEST_CASE("an answer that is wrong goes no further than the combinator that was given it") {
  auto const p = testing::skip_chain(6, 3, 1);
  auto const peak = once{}(p, {}).peak_bytes;
  auto const told = [&](auto const& change, remat_limits const& limits, std::string const& text) {
    auto const lies = [&](remat_problem const& q, remat_limits const&) {
      auto a = once{}(q, {});
      change(a);
      return a;
    };
    auto const check = [&](char const* who, auto const& solver) {
      auto const said = testing::message_of([&] { (void)solver(p, limits); });
      CHECK_MESSAGE(said.starts_with(std::string(who) + " gave a wrong answer for a block of "), said);
      CHECK_MESSAGE(said.find(text) != std::string::npos, said);
    };
    check("best_of: a solver", best_of(quick, lies));
    check("first_optimal: a solver", first_optimal(lies, quick));
    check("seed_then_improve: the seed", seed_then_improve(lies, remat_branch_and_bound{}));
  };
  told([](remat_answer&) {}, {.peak_bytes = peak - 1}, "the limit is " + std::to_string(peak - 1));
  told([](remat_answer& a) { a.steps.erase(a.steps.begin()); }, {}, "step 0: ");
  told([](remat_answer& a) { a.steps.clear(); }, {}, "op 0 never runs");
  told([](remat_answer& a) { a.time /= 2; }, {}, "another time");
  told([](remat_answer& a) { a.peak_bytes /= 2; }, {}, "another peak");
  told([](remat_answer& a) { a.lower_bound = 2 * a.time; }, {}, "less time than its lower bound");
}

TEST_CASE("options are those that no other beats") {
  std::vector<remat_answer> answers;
  auto const add = [&](double time, std::int64_t peak, std::int64_t saved) {
    answers.push_back({.time = time, .peak_bytes = peak, .saved_bytes = saved, .status = remat_status::feasible});
  };
  add(3, 10, 5), add(2, 12, 5), add(3, 11, 5), add(4, 11, 4), add(2, 12, 5), add(9, 10, 5);
  answers.push_back({});
  auto const kept = pareto(answers);
  REQUIRE(kept.size() == 3);
  CHECK((kept[0].time == 2 && kept[1].time == 3 && kept[1].peak_bytes == 10 && kept[2].time == 4));
}
