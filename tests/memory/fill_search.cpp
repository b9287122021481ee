#include <neap/memory/exact/fill_search.hpp>

#include "brute_force.hpp"

#include <neap/memory/check/check.hpp>
#include <neap/memory/exact/exact.hpp>

#include "../support/packings.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;
using neap::testing::cases;
using neap::testing::pattern;
using neap::testing::planted;
using neap::testing::sanitized;

namespace {

/// Decided by that search alone; the plan, if there is one, has passed the check.
detail::ruling decide(memory_problem const& p, std::int64_t capacity, search_tricks tricks,
                      std::int64_t most_nodes = std::int64_t{1} << 60) {
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < p.count(); ++i) order.push_back(i);
  auto const ground = detail::ground_of<std::int32_t>(p, order, 1);
  detail::fill_search<std::int32_t> search(ground, tricks);
  search.start(static_cast<std::int32_t>(capacity));
  auto const said = search.run([&](std::int64_t nodes) { return nodes >= most_nodes; });
  if (said != detail::ruling::found) return said;
  memory_plan plan;
  plan.arena_bytes = capacity;
  plan.offsets.assign(search.offsets().begin(), search.offsets().end());
  REQUIRE_MESSAGE(verify(p, plan).ok(), verify(p, plan).message());
  return said;
}

}  // namespace

TEST_CASE("decided by gaps alone, with tricks on or off: found exactly where there is a place") {
  std::mt19937_64 rng(97);
  int possible = 0, impossible = 0;
  constexpr int tries = cases(rounds / 40);
  for (int round = 0; round < tries; ++round) {
    std::vector<usage_record> records;
    std::int64_t optimum = 0;
    if (round % 2 == 0) {
      records = random_records(rng, {});
      if (rng() % 4 == 0) records.push_back(records[0]);  // a twin
      optimum = load_of(records);
      while (!board(records).fits(optimum)) ++optimum;
    } else {
      // A packing that fills all; then some of its records give bytes to others that live at the same moments: the load
      // stays, the sums do not.
      records = planted({pattern::pinwheel, 20, 10, 100, 0}, rng()).records;
      for (int k = 0; k < 3000; ++k) {
        auto &from = records[rng() % records.size()], &to = records[rng() % records.size()];
        if (from.lower != to.lower || from.upper != to.upper || from.size < 2) continue;
        --from.size, ++to.size;
      }
      optimum = exact{.tricks = {.skyline = false, .fill = false}}(records).arena_bytes;  // by other means
    }
    auto const load = load_of(records);
    memory_problem const p(records);
    search_tricks tricks;
    tricks.decompose = round % 3 != 0, tricks.twins = round % 5 != 0, tricks.remember = round % 7 != 0;
    tricks.first_run = std::array<std::int64_t, 4>{10, 0, 1, 3}[rng() % 4];
    for (auto capacity = load - 1; capacity <= optimum + 1; ++capacity) {
      bool const fits = capacity >= optimum;
      CAPTURE(round);
      REQUIRE(decide(p, capacity, tricks) == (fits ? detail::ruling::found : detail::ruling::impossible));
      possible += fits, impossible += !fits && capacity >= load;
    }
  }
  MESSAGE(possible << " capacities that fit, " << impossible << " that do not though the load does");
  CHECK(possible >= tries * 2);
  CHECK((impossible >= tries / 100 || sanitized));
}

TEST_CASE("packings in few moments are found almost without a failure, and never called impossible") {
  int found = 0, straight = 0;
  int const seeds = cases(24);
  for (int seed = 0; seed < seeds; ++seed)
    for (auto kind : {pattern::guillotine, pattern::pinwheel, pattern::corners, pattern::slabs}) {
      auto const given = planted({kind, 80, 8, 1000, 0}, static_cast<std::uint64_t>(seed));
      memory_problem const p(given.records);
      CAPTURE(seed);
      auto const said = decide(p, given.capacity, {}, 20'000);
      REQUIRE(said != detail::ruling::impossible);
      found += said == detail::ruling::found;
      straight += decide(p, given.capacity, {}, 100) == detail::ruling::found;
    }
  CHECK(found >= 4 * seeds * 9 / 10);
  CHECK(straight >= 4 * seeds / 2);
}

TEST_CASE("the exact planner finds packings in few moments that only the search by gaps finds") {
  int with = 0, without = 0;
  for (std::uint64_t seed : {0u, 2u, 10u, 16u, 18u}) {
    if (sanitized && seed > 0) break;
    for (auto kind : {pattern::pinwheel, pattern::slabs}) {
      auto const given = planted({kind, 80, 8, 1000, 0}, seed);
      auto const decided = [&](bool fill) {
        auto const plan = exact{.capacity = given.capacity,
                                .budget = {.nodes = 60'000},
                                .tricks = {.fill = fill, .planar = false}}(given.records);
        REQUIRE(plan.status != plan_status::infeasible);
        REQUIRE_MESSAGE(verify(given.records, plan).ok(), verify(given.records, plan).message());
        return has_offsets(plan);
      };
      with += decided(true), without += decided(false);
    }
  }
  CHECK(with >= (sanitized ? 1 : 9));
  CHECK(without <= 7);
}

TEST_CASE("which grounds have records that fill gaps") {
  std::vector<usage_record> records{
      {.upper = 1, .size = 3}, {.upper = 2, .size = 4}, {.lower = 1, .upper = 2, .size = 3}};
  auto const of = [&] { return detail::ground_of<std::int32_t>(records, {0, 1, 2}, 1); };
  CHECK(detail::many_fill_gaps(of()));
  records[1].alignment = 2;
  CHECK_FALSE(detail::many_fill_gaps(of()));
  records[1].alignment = 1, records[0].offset = 0;
  CHECK_FALSE(detail::many_fill_gaps(of()));
}
