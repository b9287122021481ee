#include <neap/solve/remat_branch_and_bound.hpp>

#include <neap/solve/remat_check.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../support/sanitized.hpp"
#include "remat_blocks.hpp"

using namespace neap;

TEST_CASE("equal to trying everything, on 5000 blocks of up to 8 ops") {
  random_stream draw(1);
  int const rounds = testing::sanitized ? 500 : 5000;
  int solved = 0, dearer = 0, impossible = 0;
  for (int round = 0; round < rounds; ++round) {
    auto const p = testing::random_block(draw, 8);
    REQUIRE(check(p).ok());
    if (p.values.size() > 12) continue;
    auto const once = testing::peak_once(p), alone = testing::largest_op(p);
    remat_limits limits{once - draw.below(static_cast<std::uint32_t>(once - alone) + 2)};
    if (p.pause_after >= 0 && draw.below(2) == 0) limits.saved_bytes = draw.below(32);
    double const least = testing::least_time(p, limits);
    auto const a = remat_branch_and_bound{}(p, limits);
    CAPTURE(round);
    auto const right = verify(p, limits, a);
    CHECK_MESSAGE(right.ok(), right.message());
    CHECK(in_phases(p, a.steps));
    if (least < std::numeric_limits<double>::infinity()) {
      CHECK(a.status == remat_status::optimal);
      CHECK(a.time == doctest::Approx(least).epsilon(1e-9));
      ++solved;
      dearer += a.time > time_once(p) + 1e-9;
    } else {
      CHECK(a.status == remat_status::infeasible);
      ++impossible;
    }
  }
  // The cases are worth trying: many need recomputation, and some are impossible.
  CHECK(solved > rounds / 3);
  CHECK(dearer > rounds / 20);
  CHECK(impossible > rounds / 20);
  MESSAGE(solved, " solved, ", dearer, " with recomputation, ", impossible, " impossible");
}
