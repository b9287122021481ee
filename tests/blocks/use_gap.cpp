#include <neap/blocks/use_gap.hpp>

#include <neap/blocks/remat_branch_and_bound.hpp>
#include <neap/blocks/remat_check.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "../support/sanitized.hpp"
#include "remat_blocks.hpp"

using namespace neap;

TEST_CASE("2000 random blocks: no answer over its limits, none below the least time, few far above") {
  random_stream draw(2);
  int const rounds = testing::sanitized ? 200 : 2000;
  int compared = 0, met = 0, missed = 0;
  for (int round = 0; round < rounds; ++round) {
    auto const p = testing::random_block(draw, round % 2 ? 8 : 30);
    std::vector<remat_limits> limits;
    for (int k = 0; k < 4; ++k) {
      limits.push_back({testing::drawn_peak(draw, p)});
      if (p.pause_after >= 0 && k % 2) limits.back().saved_bytes = draw.below(40);
    }
    auto const answers = use_gap{.budget = {.work = 4000}, .seed = 3}.front(p, limits);
    REQUIRE(answers.size() == limits.size());
    for (std::size_t i = 0; i < limits.size(); ++i) {
      CAPTURE(round);
      auto const right = verify(p, limits[i], answers[i]);
      CHECK_MESSAGE(right.ok(), right.message());
      CHECK(in_phases(p, answers[i].steps));
      if (p.values.size() > 11) continue;
      double const least = testing::least_time(p, limits[i]);
      if (!has_steps(answers[i])) {
        missed += least < std::numeric_limits<double>::infinity();
        if (answers[i].status == remat_status::infeasible) CHECK(!(least < std::numeric_limits<double>::infinity()));
        continue;
      }
      ++compared;
      CHECK(answers[i].time >= least - 1e-6);
      CHECK(answers[i].lower_bound <= least + 1e-6);
      met += answers[i].time <= least + 1e-6;
    }
  }
  MESSAGE(compared, " compared, ", met, " met the least time, ", missed, " not found");
  CHECK(compared > rounds / 4);
  CHECK(met * 100 >= compared * 98);
  CHECK(missed * 50 <= compared);
}

TEST_CASE("one run answers all limits, the same each time, and more memory never takes more time") {
  auto const p = testing::skip_chain(20, 3, 1);
  std::vector<remat_limits> limits;
  auto const once = testing::peak_once(p);
  for (int percent = 100; percent >= 45; percent -= 5) limits.push_back({once * percent / 100});
  use_gap const search{.budget = {.work = 100'000}, .seed = 7};
  auto const answers = search.front(p, limits);
  auto const same = search.front(p, limits);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    REQUIRE(has_steps(answers[i]));
    CHECK(verify(p, limits[i], answers[i]).ok());
    CHECK(answers[i].steps == same[i].steps);
    if (i > 0) CHECK(answers[i].time >= answers[i - 1].time);
    auto const exact = remat_branch_and_bound{.budget = {.work = 5'000'000}}(p, limits[i]);
    CAPTURE(i);
    CHECK(answers[i].time <= 1.03 * exact.time);
    CHECK(answers[i].time >= exact.lower_bound);
  }
  CHECK(answers[0].status == remat_status::optimal);
  CHECK(answers[0].time == time_once(p));
}

TEST_CASE("a faulty problem is refused with the place") {
  remat_problem p;
  p.values = {{4}};
  p.ops = {{.time = 1, .inputs = {0, 3}}};
  auto const a = use_gap{}(p, {});
  CHECK(a.status == remat_status::infeasible);
  CHECK(a.why == "op 0: an input is no value of this block");
}

TEST_CASE("an improved answer is never slower, and is often quicker") {
  random_stream draw(8);
  int quicker = 0;
  for (int round = 0; round < neap::testing::cases(300); ++round) {
    auto const p = round % 2 ? testing::random_block(draw, 20) : testing::altered_chain(draw);
    auto const once = testing::peak_once(p), alone = testing::largest_op(p);
    remat_limits const limits{alone + (once - alone) / 2};
    auto const known = use_gap{.budget = {.work = 60}}(p, limits);
    auto const exact = remat_branch_and_bound{.budget = {.work = 200'000}}(p, limits);
    for (auto const& from : {known, exact}) {
      auto const a = use_gap{.budget = {.work = 600}, .seed = 2}.improve(p, limits, from);
      CAPTURE(round);
      auto const right = verify(p, limits, a);
      CHECK_MESSAGE(right.ok(), right.message());
      CHECK(a.lower_bound >= std::min(from.lower_bound, a.time));
      if (has_steps(from)) CHECK((has_steps(a) && a.time <= from.time));
      quicker += has_steps(a) && (!has_steps(from) || a.time < from.time);
    }
  }
  CHECK(quicker > (neap::testing::sanitized ? 0 : 5));
}
