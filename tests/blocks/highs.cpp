#ifdef NEAP_HAS_HIGHS
#include <neap/blocks/highs.hpp>
#endif

#include <neap/blocks/checkmate_milp.hpp>
#include <neap/blocks/default_remat_solver.hpp>
#include <neap/blocks/remat_branch_and_bound.hpp>
#include <neap/blocks/remat_check.hpp>
#include <neap/blocks/remat_solver.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include "../support/sanitized.hpp"
#include "remat_blocks.hpp"

using namespace neap;

#ifdef NEAP_HAS_HIGHS

static_assert(linear_solver<highs> && remat_solver<checkmate<highs>>);

TEST_CASE("small programs") {
  linear_problem p;  // two kinds of coins
  auto const three = p.add_column(0, 100, 1, true), five = p.add_column(0, linear_problem::unbounded, 1, true);
  p.add_row(11, {{three, 3}, {five, 5}}, 11);
  auto const a = highs{}(p);
  CHECK(a.status == linear_status::optimal);
  CHECK(a.cost == doctest::Approx(3));
  CHECK(a.lower_bound == doctest::Approx(3));
  CHECK(verify(p, a).ok());
  p.integral.assign(2, false);
  CHECK(highs{}(p).cost == doctest::Approx(2.2));
  p.add_row(-linear_problem::unbounded, {{five, 1}}, 1);
  p.upper[three] = 1;
  CHECK(highs{}(p).status == linear_status::infeasible);
  linear_problem empty;
  CHECK(highs{}(empty).status == linear_status::optimal);
}

TEST_CASE("Checkmate's program by HiGHS equals the built-in search on random blocks") {
  random_stream draw(11);
  int solved = 0, dearer = 0;
  for (int round = 0; round < 250; ++round) {
    auto const p = testing::random_block(draw, 9);
    remat_limits limits{testing::drawn_peak(draw, p)};
    if (p.pause_after >= 0 && draw.below(2) == 0) limits.saved_bytes = draw.below(32);
    auto const a = remat_branch_and_bound{}(p, limits);
    auto const b = checkmate<highs>{}(p, limits);
    CAPTURE(round);
    CHECK(a.status == b.status);
    auto const right = verify(p, limits, b);
    CHECK_MESSAGE(right.ok(), right.message());
    if (!has_steps(a) || !has_steps(b)) continue;
    CHECK(a.time == doctest::Approx(b.time).epsilon(1e-6));
    CHECK(checkmate_bound(highs{}, p, limits) <= a.time + 1e-5);
    ++solved;
    dearer += a.time > time_once(p) + 1e-9;
  }
  CHECK(solved > 80);
  CHECK(dearer > 15);
}

TEST_CASE("and on chains with skips") {
  for (std::uint64_t seed : {4, 5}) {
    auto const p = testing::skip_chain(10, 3, seed);
    for (int percent : {75, 60, 50}) {
      remat_limits const limits{testing::peak_once(p) * percent / 100};
      auto const a = default_remat_solver{}(p, limits);
      auto const b = checkmate<highs>{{.seconds = 60}}(p, limits);
      CAPTURE(percent);
      CHECK(a.status == remat_status::optimal);
      REQUIRE(b.status == remat_status::optimal);
      CHECK(a.time == b.time);
    }
  }
}

TEST_CASE("a time limit gives what there is, and its bound") {
  auto const p = testing::skip_chain(30, 3, 1);
  remat_limits const limits{testing::peak_once(p) / 2};
  auto const a = checkmate<highs>{{.seconds = 0.3}}(p, limits);
  CHECK(a.status != remat_status::optimal);
  CHECK(a.status != remat_status::infeasible);
  CHECK(verify(p, limits, a).ok());
  CHECK(a.lower_bound >= time_once(p));
}

#else

TEST_CASE("HiGHS") { MESSAGE("this test is skipped: HiGHS is not installed (pip install highsbox)"); }

#endif
