#include <neap/blocks/remat_solver.hpp>

#include <neap/blocks/default_remat_solver.hpp>
#include <neap/blocks/remat_branch_and_bound.hpp>
#include <neap/blocks/remat_check.hpp>
#include <neap/blocks/use_gap.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <utility>
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
    remat_limits const limits{testing::drawn_peak(draw, p)};
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

TEST_CASE("times and bounds that are no numbers, and proofs that another answer contradicts, are told") {
  auto const p = testing::skip_chain(6, 3, 1);
  auto const right = once{}(p, {});
  double const no_number = std::numeric_limits<double>::quiet_NaN();
  auto const says = [](std::string const& said, std::string const& text) {
    CHECK_MESSAGE(said.find(text) != std::string::npos, said);
    CHECK(said.find('\n') == std::string::npos);
  };
  auto wrong = right;
  wrong.time = no_number;
  says(verify(p, {}, wrong).message(), "another time");
  wrong = right, wrong.lower_bound = no_number;
  says(verify(p, {}, wrong).message(), "lower bound");
  wrong = {}, wrong.lower_bound = no_number;
  says(verify(p, {}, wrong).message(), "lower bound");

  auto const gives = [](remat_answer const& a) { return [a](remat_problem const&, remat_limits const&) { return a; }; };
  remat_answer out_of_reach, too_high;
  out_of_reach.status = remat_status::infeasible;
  out_of_reach.lower_bound = std::numeric_limits<double>::infinity();
  too_high.lower_bound = 2 * right.time;
  auto const told = [&](auto const& solver) { return testing::message_of([&] { (void)solver(p, remat_limits{}); }); };
  for (auto const& [lie, text] : {std::pair{out_of_reach, "that nothing fits"}, std::pair{too_high, "lower bound"}}) {
    says(told(best_of(gives(lie), once{})), text);
    says(told(best_of(once{}, gives(lie))), text);
    says(told(best_of(quick, gives(lie), once{})), text);
    CHECK(told(best_of(gives(lie), gives(lie))) == "no error");
  }
  says(told(first_optimal(gives(too_high), once{})), "lower bound");
  CHECK(told(best_of(gives({}), once{})) == "no error");
}

namespace {

/// Improves by what a function makes of the known answer.
template <class F>
struct improves {
  F change;
  remat_answer operator()(remat_problem const&, remat_limits const&) const { return {}; }
  remat_answer improve(remat_problem const&, remat_limits const&, remat_answer const& known) const {
    auto a = known;
    change(a);
    return a;
  }
};
template <class F>
improves(F) -> improves<F>;

}  // namespace

TEST_CASE("an improver of one's own: a wrong answer is told, and a slower one or none leaves the known one") {
  auto const p = testing::skip_chain(6, 3, 1);
  auto const told = [&](auto const& change) {
    return testing::message_of([&] { (void)seed_then_improve(quick, improves{change})(p, {}); });
  };
  remat_limits const limits{once{}(p, {}).peak_bytes - 1};  // quick proves nothing under it
  auto const known = quick(p, limits);
  REQUIRE(has_steps(known));
  REQUIRE(known.status == remat_status::feasible);
  auto const from_known = [&](auto const& change) { return seed_then_improve(quick, improves{change})(p, limits); };
  auto const wrong = [&](auto const& change, std::string const& text) {
    auto const said = testing::message_of([&] { (void)from_known(change); });
    CHECK_MESSAGE(said.starts_with("seed_then_improve: the second gave a wrong answer for a block of "), said);
    CHECK_MESSAGE(said.find(text) != std::string::npos, said);
  };
  wrong([](remat_answer& a) { a.steps.erase(a.steps.begin()); }, "step 0: ");
  wrong([](remat_answer& a) { a.time /= 2; }, "another time");
  wrong([](remat_answer& a) { a.steps.clear(); }, "op 0 never runs");
  auto const same = [&](auto const& change) {
    auto const a = from_known(change);
    CHECK(a.steps == known.steps);
    CHECK(a.time == known.time);
    CHECK(verify(p, limits, a).ok());
  };
  same([](remat_answer&) {});
  same([](remat_answer& a) { a = {}; });
  same([&](remat_answer& a) {  // the first op once more
    std::vector<std::uint32_t> runs{0};
    for (auto const& s : known.steps)
      if (s.what == remat_step::action::compute) runs.push_back(s.index);
    auto slower = answer_of(p, runs);
    if (verify(p, limits, slower).ok()) a = std::move(slower), a.status = remat_status::feasible;
  });
  CHECK(told([](remat_answer&) {}) == "no error");
  CHECK(testing::message_of([&] { from_known([](remat_answer&) { throw_error({"of its own"}); }); }) == "of its own");
}

TEST_CASE("combinators of solvers that prove little: statuses and bounds hold against trying everything") {
  random_stream draw(77);
  auto const nothing = [](remat_problem const&, remat_limits const&) { return remat_answer{}; };
  int optimal = 0, infeasible = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    auto const p = testing::random_block(draw, 7);
    auto const high = testing::peak_once(p), alone = testing::largest_op(p);
    remat_limits const limits{high - draw.below(static_cast<std::uint32_t>(high - alone) + 3)};
    double const least = testing::least_time(p, limits);
    remat_branch_and_bound const few{.budget = {.work = 1 + draw.below(40)}};
    for (auto const& a : {best_of(nothing, few, quick)(p, limits), best_of(quick, few)(p, limits),
                          first_optimal(nothing, once{}, few)(p, limits), first_optimal(few, quick)(p, limits),
                          seed_then_improve(nothing, few)(p, limits), seed_then_improve(quick, few)(p, limits),
                          seed_then_improve(few, quick)(p, limits),
                          best_of(seed_then_improve(once{}, few), first_optimal(nothing, quick))(p, limits)}) {
      CHECK(verify(p, limits, a).ok());
      CHECK(a.lower_bound <= least * (1 + 1e-9));
      if (has_steps(a)) CHECK(a.time >= least * (1 - 1e-9));
      if (a.status == remat_status::optimal) CHECK(a.time == doctest::Approx(least));
      if (a.status == remat_status::infeasible) CHECK(least == std::numeric_limits<double>::infinity());
      optimal += a.status == remat_status::optimal, infeasible += a.status == remat_status::infeasible;
    }
  }
  CHECK(optimal > 300);
  CHECK(infeasible > 20);
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
