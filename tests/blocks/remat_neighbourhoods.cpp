#include <neap/blocks/remat_neighbourhoods.hpp>

#include <neap/blocks/remat_check.hpp>
#include <neap/blocks/remat_solver.hpp>
#include <neap/blocks/use_gap.hpp>

#include <doctest/doctest.h>

#include "../support/sanitized.hpp"
#include "remat_blocks.hpp"

using namespace neap;

static_assert(remat_improver<remat_neighbourhoods>);

TEST_CASE("never slower than what it starts from, and right; near the least time on short chains") {
  random_stream draw(23);
  int const rounds = testing::sanitized ? 20 : 60;
  int started = 0, improved = 0, met = 0, better = 0;
  for (int round = 0; round < rounds; ++round) {
    auto const p = round % 2 ? testing::random_block(draw, 30) : testing::skip_chain(10, draw.below(4), draw());
    auto const once = testing::peak_once(p), alone = testing::largest_op(p);
    remat_limits limits{alone + (once - alone) * (1 + draw.below(3)) / 5};
    if (round % 2 && p.pause_after >= 0 && draw.below(2) == 0) limits.saved_bytes = 20 + draw.below(40);
    CAPTURE(round);
    auto const known = use_gap{.budget = {.work = 300}, .seed = 5}(p, limits);
    auto const exact = remat_branch_and_bound{.budget = {.work = 300'000}}(p, limits);
    remat_neighbourhoods const search{.budget = {.work = 200'000}, .patience = 60};
    auto const a = search.improve(p, limits, known);
    auto const right = verify(p, limits, a);
    CHECK_MESSAGE(right.ok(), right.message());
    CHECK(in_phases(p, a.steps));
    CHECK(has_steps(a) == has_steps(known));
    if (has_steps(exact)) CHECK(a.lower_bound <= exact.time + 1e-9);
    auto const alone_found = search(p, limits);
    CHECK(verify(p, limits, alone_found).ok());
    if (!has_steps(known)) continue;
    CHECK(a.time <= known.time);
    CHECK(search.improve(p, limits, known).steps == a.steps);  // by its seed
    if (exact.status != remat_status::optimal) continue;
    ++started;
    improved += known.time > exact.time + 1e-9;
    better += a.time < known.time - 1e-9;
    met += a.time <= exact.time + 1e-9;
  }
  MESSAGE(started, " started, ", improved, " could be improved, ", better, " were; ", met, " at the least time");
  CHECK(started > rounds / 3);
  CHECK(better > improved * 3 / 4);
  CHECK(met > started * 9 / 10);
}

TEST_CASE("nothing to do") {
  auto const p = testing::skip_chain(6, 3, 1);
  auto const all = remat_branch_and_bound{}(p, {});
  REQUIRE(all.status == remat_status::optimal);
  CHECK(remat_neighbourhoods{}.improve(p, {}, all).steps == all.steps);
  CHECK(remat_neighbourhoods{}(p, {.peak_bytes = 1}).status == remat_status::infeasible);
  CHECK(remat_neighbourhoods{}.improve(p, {.peak_bytes = 1}, {}).status == remat_status::budget_spent);
  CHECK(remat_neighbourhoods{}(remat_problem{}, {}).status == remat_status::optimal);
}
