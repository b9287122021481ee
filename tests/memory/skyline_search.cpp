#include <neap/memory/exact/skyline_search.hpp>

#include "brute_force.hpp"

#include <neap/memory/bounds.hpp>
#include <neap/memory/check/check.hpp>
#include <neap/memory/exact/exact.hpp>

#include "../support/packings.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;
using neap::testing::packing;
using neap::testing::pattern;
using neap::testing::planted;

namespace {

/// Decided by the skyline search alone; the plan, if there is one, has passed the check.
detail::feasibility decide(memory_problem const& p, std::int64_t capacity, search_tricks tricks) {
  std::vector<std::uint32_t> occupying;
  for (std::uint32_t i = 0; i < p.count(); ++i)
    if (p.occupies(i)) occupying.push_back(i);
  auto const unit = detail::granularity(p);
  auto const packing = detail::packing_problem_of(p, occupying, unit);
  detail::skyline_search search(packing, tricks);
  search.start(capacity / unit);
  auto const fits = search.run({});
  if (fits != detail::feasibility::yes) return fits;
  memory_plan plan;
  plan.arena_bytes = capacity;
  plan.offsets.assign(p.count(), 0);
  for (std::size_t i = 0; i < p.count(); ++i)
    if (p.fixed_of(i) != any_offset) plan.offsets[i] = p.fixed_of(i);
  for (std::size_t k = 0; k < occupying.size(); ++k) plan.offsets[occupying[k]] = search.offset(k) * unit;
  REQUIRE_MESSAGE(verify(p, plan).ok(), verify(p, plan).message());
  return fits;
}

}  // namespace

TEST_CASE("decided alone, with every trick on or off: found exactly where brute force finds a place") {
  std::mt19937_64 rng(91);
  int possible = 0, impossible = 0;
  constexpr int tries = neap::testing::cases(rounds / 8);
  for (int round = 0; round < tries; ++round) {
    auto records = random_records(rng, {round % 2 == 1, false, round / 2 % 4 == 3});
    if (rng() % 4 == 0) records.push_back(records[0]), records.push_back(records[0]);  // twins
    memory_problem const p(records);
    search_tricks tricks;
    tricks.decompose = round % 3 != 0, tricks.twins = round % 5 != 0, tricks.meeting = round % 7 != 0;
    tricks.remember = round % 11 != 0, tricks.first_run = std::array<std::int64_t, 4>{10, 0, 1, 3}[rng() % 4];
    auto const load = load_of(records);
    for (auto capacity = load > 0 ? load - 1 : 0; capacity < load + 3; ++capacity) {
      CAPTURE(round);
      auto const fits = board(records).fits(capacity);
      REQUIRE(decide(p, capacity, tricks) == (fits ? detail::feasibility::yes : detail::feasibility::no));
      possible += fits, impossible += !fits;
    }
  }
  CHECK(possible > tries / 2);
  CHECK(impossible > tries / 2);
}

TEST_CASE("packings that were there before are never called impossible, and most are found") {
  struct size {
    int records;
    std::int64_t moments, bytes;
    double holes;
    int found;  // at least, of 10 a pattern
  };
  for (auto const& s : {size{30, 20, 1000, 0, 10}, size{80, 20, 1'000'000, 0, 3}, size{80, 8, 500, 0.05, 10},
                        size{150, 1000, 1000, 0.05, 8}})
    for (auto kind : {pattern::guillotine, pattern::pinwheel, pattern::corners, pattern::slabs}) {
      int found = 0;
      for (std::uint64_t seed = 0; seed < neap::testing::cases(10u); ++seed) {
        auto const p = planted({kind, s.records, s.moments, s.bytes, s.holes}, seed);
        auto const plan = exact{.capacity = p.capacity, .budget = {.nodes = 30'000}}(p.records);
        REQUIRE(plan.status != plan_status::infeasible);
        REQUIRE_MESSAGE(verify(p.records, plan).ok(), verify(p.records, plan).message());
        REQUIRE((!has_offsets(plan) || plan.arena_bytes <= p.capacity));
        found += has_offsets(plan);
      }
      CAPTURE(s.records);
      CAPTURE(s.moments);
      CAPTURE(static_cast<int>(kind));
      CHECK(found >= (neap::testing::sanitized ? 0 : s.found));
    }
}

TEST_CASE("the clock's scale is no matter: ranks in place of times, the same nodes") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    auto const p = planted({pattern::guillotine, 40, 200, 1000, 0.1}, seed);
    auto const count = [](packing const& q) {
      memory_problem const problem(q.records);
      std::vector<std::uint32_t> order(problem.count());
      for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
      auto const packing = detail::packing_problem_of(problem, order, 1);
      detail::skyline_search search(packing, {});
      search.start(q.capacity);
      CHECK(search.run(detail::stop_condition::after_nodes(20'001)) != detail::feasibility::no);
      return search.nodes();
    };
    CHECK(count(p) == count(by_rank(p)));
    CHECK(count(p) == count(stretched(p, seed)));
  }
}
