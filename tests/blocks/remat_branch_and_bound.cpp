#include <neap/blocks/remat_branch_and_bound.hpp>

#include <neap/blocks/remat_check.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../support/sanitized.hpp"
#include "remat_blocks.hpp"

using namespace neap;

TEST_CASE("equal to trying everything, on 5000 blocks of up to 8 ops (and chains of up to 10)") {
  random_stream draw(1);
  int const rounds = testing::sanitized ? 500 : 5100;
  int solved = 0, dearer = 0, impossible = 0;
  for (int round = 0; round < rounds; ++round) {
    auto const p = round % 4 ? testing::random_block(draw, 8) : testing::altered_chain(draw);
    REQUIRE(check(p).ok());
    if (p.values.size() > 12) continue;
    remat_limits limits{testing::drawn_peak(draw, p)};
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
  CHECK(solved + impossible >= rounds * 98 / 100);
  CHECK(solved > rounds / 3);
  CHECK(dearer > rounds / 20);
  CHECK(impossible > rounds / 20);
  MESSAGE(solved, " solved, ", dearer, " with recomputation, ", impossible, " impossible");
}

TEST_CASE("an op may run again only for what another op of the same phase drops") {
  // In the last phase value 5 must go while op 2 makes the kept value 3 again, and op 4 makes it once more, for which op 0
  // has to run before op 2: value 1 is of no use to anybody later.
  remat_problem p;
  p.values = {{2}, {3}, {1}, {6, true}, {0}, {8, true}, {6}, {4}, {2}, {2}};
  auto const op = [&](double time, std::int64_t workspace, std::vector<std::uint32_t> inputs, std::uint32_t output) {
    p.ops.push_back({time, workspace, std::move(inputs), {output}});
  };
  op(6, 0, {}, 1), op(6, 0, {0}, 2), op(3, 3, {2}, 3), op(1, 0, {1, 2, 3}, 4), op(4, 0, {0, 1, 3, 4}, 5);
  op(1, 0, {2, 3, 4}, 6), op(1, 0, {0, 5, 6}, 7), op(6, 0, {4, 5, 6, 7}, 8), op(1, 0, {0, 5, 7}, 9);
  CHECK(testing::least_time(p, {23}) == 42);
  auto const a = remat_branch_and_bound{}(p, {23});
  CHECK(a.status == remat_status::optimal);
  CHECK(a.time == 42);
}

TEST_CASE("the search's tricks change its work only") {
  random_stream draw(31);
  std::int64_t with = 0, without = 0;
  for (int round = 0; round < 200; ++round) {
    auto const p = testing::altered_chain(draw);
    auto const once = testing::peak_once(p), alone = testing::largest_op(p);
    remat_limits const limits{alone + (once - alone) / 2};
    auto const a = remat_branch_and_bound{}(p, limits);
    auto const b = remat_branch_and_bound{.drop_beaten = false, .run_late = false}(p, limits);
    auto const c = remat_branch_and_bound{.narrow = 1}(p, limits);
    auto const d = remat_branch_and_bound{.reprice = 0}(p, limits);
    CHECK((a.status == b.status && a.status == c.status && a.status == d.status));
    CHECK((a.time == b.time && a.time == c.time && a.time == d.time));
    with += a.work, without += b.work;
  }
  CHECK(with < without);
}

TEST_CASE("a budget that ends the search leaves an answer and a bound that holds") {
  auto const p = testing::skip_chain(20, 3, 2);
  remat_limits const limits{testing::peak_once(p) * 45 / 100};
  auto const whole = remat_branch_and_bound{.budget = {}}(p, limits);
  REQUIRE(whole.status == remat_status::optimal);
  double last = 0;
  for (std::int64_t work : {100, 10'000, 100'000, 1'000'000}) {
    auto const a = remat_branch_and_bound{.budget = {.work = work}}(p, limits);
    CAPTURE(work);
    CHECK(verify(p, limits, a).ok());
    CHECK(a.lower_bound <= whole.time);
    CHECK(a.lower_bound >= last);
    if (has_steps(a)) CHECK(a.time >= whole.time);
    CHECK(a.work < 2 * work + 200'000);
    last = a.lower_bound;
  }
  auto const better = remat_branch_and_bound{.budget = {.work = 1}}.improve(p, limits, whole);
  CHECK(better.time == whole.time);
  CHECK(better.status == remat_status::optimal);
}

TEST_CASE("blocks of no ops, and of more values than it takes") {
  CHECK(remat_branch_and_bound{}({}, {}).status == remat_status::optimal);
  remat_problem input;
  input.values = {{5, true}};
  CHECK(remat_branch_and_bound{}(input, {5}).status == remat_status::optimal);
  CHECK(remat_branch_and_bound{}(input, {4}).status == remat_status::infeasible);
  auto const large = testing::skip_chain(150, 3, 1);
  CHECK(remat_branch_and_bound{}(large, {}).status == remat_status::budget_spent);
  CHECK(remat_branch_and_bound{}(large, {}).lower_bound == time_once(large));
}

TEST_CASE("limits far above what is needed are no trouble") {
  auto const p = testing::skip_chain(64, 3, 1);  // two words of values
  auto const a = remat_branch_and_bound{}(p, {});
  CHECK(a.status == remat_status::optimal);
  CHECK(a.time == time_once(p));
}
