#include <neap/blocks/grouped_remat.hpp>

#include <neap/blocks/remat_check.hpp>
#include <neap/blocks/use_gap.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "../support/message.hpp"
#include "remat_blocks.hpp"

using namespace neap;

TEST_CASE("random blocks in groups: an answer for groups is one for ops, as quick and no larger") {
  random_stream draw(4);
  int compared = 0, grouped = 0;
  for (int round = 0; round < 600; ++round) {
    CAPTURE(round);
    auto const p = testing::random_block(draw, 30);
    auto const g = group_ops(p, 1 + draw.below(6));
    auto const valid = check(g.problem);
    REQUIRE_MESSAGE(valid.ok(), valid.message());
    grouped += g.ends.size() < p.ops.size();
    CHECK(time_once(g.problem) == doctest::Approx(time_once(p)));
    auto const once = testing::peak_once(g.problem);
    std::vector<remat_limits> limits{{once}, {once * 8 / 10}, {once * 6 / 10}};
    if (p.pause_after >= 0) limits.push_back({once, 20});
    auto const answers = use_gap{.budget = {.work = 1000}}.front(g.problem, limits);
    for (std::size_t i = 0; i < limits.size(); ++i) {
      auto const a = ungrouped(p, g, answers[i]);
      CHECK(has_steps(a) == has_steps(answers[i]));
      if (!has_steps(a)) continue;
      ++compared;
      auto const right = verify(p, limits[i], a);
      CHECK_MESSAGE(right.ok(), right.message());
      CHECK(a.time == doctest::Approx(answers[i].time));
      CHECK(a.peak_bytes <= answers[i].peak_bytes);
      CHECK(a.saved_bytes <= answers[i].saved_bytes);
    }
  }
  CHECK(grouped > 400);
  CHECK(compared > 800);
}

TEST_CASE("a block of a thousand values is solved by a solver of 256") {
  auto const p = testing::skip_chain(500, 3, 1);
  REQUIRE(p.values.size() > 900);
  auto const once = testing::peak_once(p);
  std::vector<remat_limits> const limits{{once * 9 / 10}, {once * 7 / 10}};
  use_gap const alone{.budget = {.work = 20000}};
  CHECK(!has_steps(alone.front(p, limits)[0]));
  auto const answers = in_groups{alone}.front(p, limits);
  for (std::size_t i = 0; i < limits.size(); ++i) {
    REQUIRE(has_steps(answers[i]));
    auto const right = verify(p, limits[i], answers[i]);
    CHECK_MESSAGE(right.ok(), right.message());
    CHECK(answers[i].time < 2 * time_once(p));
  }
  // What is small enough goes to the solver as it is.
  auto const small = testing::skip_chain(20, 3, 1);
  std::vector<remat_limits> const one{{testing::peak_once(small) * 7 / 10}};
  CHECK(in_groups{alone}.front(small, one)[0].steps == alone.front(small, one)[0].steps);
}

TEST_CASE("a wrong answer for groups is told before it is one for ops") {
  auto const p = testing::skip_chain(200, 3, 1);
  std::vector<remat_limits> const limits{{}};
  struct lies {
    remat_step step;
    std::size_t answers = 1;
    std::vector<remat_answer> front(remat_problem const& q, std::span<remat_limits const> all) const {
      auto out = use_gap{.budget = {.work = 10}}.front(q, all);
      out.resize(answers, out.front());
      out.front().steps.front() = step;
      return out;
    }
  };
  auto const told = [&](lies const& solver) {
    return testing::message_of([&] { (void)in_groups{solver}.front(p, limits); });
  };
  for (auto step : {remat_step{remat_step::action::compute, 1'000'000}, {remat_step::action::drop, 3}}) {
    auto const said = told({step});
    CHECK_MESSAGE(said.starts_with("in_groups: the solver gave a wrong answer for a block of "), said);
    CHECK(said.find("step 0: ") != std::string::npos);
  }
  CHECK(told({{}, 2}) == "in_groups: the solver gave 2 answers to 1 limits");
}
