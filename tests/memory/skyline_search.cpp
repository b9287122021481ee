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

constexpr auto never = [](std::int64_t) { return false; };

/// Decided by the skyline search alone; the plan, if there is one, has passed the check.
detail::ruling decide(memory_problem const& p, std::int64_t capacity, search_tricks tricks) {
  std::vector<std::uint32_t> occupying;
  for (std::uint32_t i = 0; i < p.count(); ++i)
    if (p.occupies(i)) occupying.push_back(i);
  auto const unit = detail::granularity(p);
  auto const ground = detail::ground_of<std::int32_t>(p, occupying, unit);
  detail::skyline_search<std::int32_t> search(ground, tricks);
  search.start(static_cast<std::int32_t>(capacity / unit));
  auto const said = search.run(never);
  if (said != detail::ruling::found) return said;
  memory_plan plan;
  plan.arena_bytes = capacity;
  plan.offsets.assign(p.count(), 0);
  for (std::size_t i = 0; i < p.count(); ++i)
    if (p.fixed_of(i) != any_offset) plan.offsets[i] = p.fixed_of(i);
  for (std::size_t k = 0; k < occupying.size(); ++k) plan.offsets[occupying[k]] = search.offsets()[k] * unit;
  REQUIRE_MESSAGE(verify(p, plan).ok(), verify(p, plan).message());
  return said;
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
      REQUIRE(decide(p, capacity, tricks) == (fits ? detail::ruling::found : detail::ruling::impossible));
      possible += fits, impossible += !fits;
    }
  }
  CHECK(possible > tries / 2);
  CHECK(impossible > tries / 2);
}

TEST_CASE("packings that were there before: found, in few nodes, and never called impossible") {
  struct size {
    int records;
    std::int64_t moments, bytes;
    double holes;
    int missed;  // at most, of 10 a pattern
  };
  for (auto const& s : {size{30, 20, 1000, 0, 0}, size{80, 20, 1'000'000, 0, 1}, size{80, 8, 500, 0.05, 3},
                        size{150, 1000, 1000, 0.05, 2}})
    for (auto kind : {pattern::guillotine, pattern::pinwheel, pattern::corners, pattern::slabs}) {
      int missed = 0;
      for (std::uint64_t seed = 0; seed < neap::testing::cases(10u); ++seed) {
        auto const p = planted({kind, s.records, s.moments, s.bytes, s.holes}, seed);
        auto const plan = exact{.capacity = p.capacity, .budget = {.nodes = 30'000}}(p.records);
        REQUIRE(plan.status != plan_status::infeasible);
        REQUIRE_MESSAGE(verify(p.records, plan).ok(), verify(p.records, plan).message());
        REQUIRE((!has_offsets(plan) || plan.arena_bytes <= p.capacity));
        missed += !has_offsets(plan);
      }
      CAPTURE(s.records);
      CAPTURE(s.moments);
      CAPTURE(static_cast<int>(kind));
      CHECK(missed <= s.missed);
    }
}

TEST_CASE("the clock's scale is no matter: ranks in place of times, the same nodes") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    auto const p = planted({pattern::guillotine, 40, 200, 1000, 0.1}, seed);
    auto const count = [](packing const& q) {
      memory_problem const problem(q.records);
      std::vector<std::uint32_t> order(problem.count());
      for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
      auto const ground = detail::ground_of<std::int32_t>(problem, order, 1);
      detail::skyline_search<std::int32_t> search(ground, {});
      search.start(static_cast<std::int32_t>(q.capacity));
      CHECK(search.run([](std::int64_t n) { return n > 20'000; }) != detail::ruling::impossible);
      return search.nodes();
    };
    CHECK(count(p) == count(by_rank(p)));
    CHECK(count(p) == count(stretched(p, seed)));
  }
}

namespace {

/// Sections that follow one another as moments do: a full packing's.
struct full_case {
  packing given;
  detail::search_ground<std::int32_t> ground;  // the records in the order given
};
full_case full(pattern kind, int records, std::uint64_t seed) {
  full_case c{planted({kind, records, 8, 200, 0}, seed), {}};
  std::vector<std::uint32_t> order(c.given.records.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  c.ground = detail::ground_of<std::int32_t>(c.given.records, order, 1);
  return c;
}
template <class Offsets>
bool touch(full_case const& c, Offsets const& offsets, std::uint32_t a, std::uint32_t b) {
  return c.ground.hull[a].end == c.ground.hull[b].begin && offsets[a] < offsets[b] + c.ground.size[b] &&
         offsets[b] < offsets[a] + c.ground.size[a];
}
/// Whether a record lives on both sides of a boundary: else the problem falls apart there from the start.
bool crossed(full_case const& c, std::uint32_t boundary) {
  return std::any_of(c.ground.hull.begin(), c.ground.hull.end(),
                     [&](auto const& life) { return life.begin < boundary && boundary < life.end; });
}
/// Those that touch in the packing given, and of the others every `part`-th or so.
detail::neighbours some_neighbours(full_case const& c, std::mt19937_64& rng, std::uint64_t part) {
  detail::neighbours near(c.ground.count(), c.ground.sections);
  std::vector<std::uint32_t> begun(c.ground.sections + 1, 0);
  for (std::uint32_t i = 0; i < c.ground.count(); ++i)
    near.bit[i] = std::uint64_t{1} << begun[c.ground.hull[i].begin]++;
  for (std::uint32_t a = 0; a < c.ground.count(); ++a) {
    near.allows[a] = std::uint64_t{1} << 63;  // nobody's
    for (std::uint32_t b = 0; b < c.ground.count(); ++b)
      if (c.ground.hull[a].end == c.ground.hull[b].begin && (touch(c, c.given.offsets, a, b) || rng() % part == 0))
        near.allows[a] |= near.bit[b];
  }
  return near;
}

}  // namespace

TEST_CASE("with neighbours given: a full packing of such is found, and touches no others") {
  std::mt19937_64 rng(8);
  int selective = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    for (auto kind : {pattern::guillotine, pattern::pinwheel, pattern::corners}) {
      auto const c = full(kind, 20, seed);
      auto const near = some_neighbours(c, rng, 2 + seed % 5);
      search_tricks tricks;
      tricks.decompose = false;  // across a boundary where the problem falls apart, all may touch
      tricks.remember = seed % 3 != 0, tricks.twins = seed % 2 != 0, tricks.first_run = seed % 4 == 0 ? 1 : 10;
      // Twins are placed in one order only: no neighbours may tell them apart.
      for (std::uint32_t i = 0; i < c.ground.count(); ++i) tricks.twins &= c.ground.twin[i] == i;
      detail::skyline_search<std::int32_t> search(c.ground, tricks);
      search.start(200, near);
      CAPTURE(seed);
      CAPTURE(static_cast<int>(kind));
      REQUIRE(search.run(never) == detail::ruling::found);
      for (std::uint32_t a = 0; a < c.ground.count(); ++a)
        for (std::uint32_t b = 0; b < c.ground.count(); ++b) {
          bool const beside = touch(c, search.offsets(), a, b);
          if (beside && crossed(c, c.ground.hull[b].begin)) REQUIRE(near.may_touch(a, b));
          selective += beside != touch(c, c.given.offsets, a, b);
        }
      memory_plan plan;
      plan.arena_bytes = 200;
      plan.offsets.assign(search.offsets().begin(), search.offsets().end());
      REQUIRE_MESSAGE(verify(c.given.records, plan).ok(), verify(c.given.records, plan).message());
    }
  CHECK(selective > 0);  // some are not the packing that was there before
}

TEST_CASE("neighbours that nothing fits are impossible; uncertain ones are let go in time") {
  // Two pairs that follow one another beside one that lasts: a and c share what b and d do not.
  std::vector<usage_record> const records{{.lower = 0, .upper = 1, .size = 3},
                                          {.lower = 0, .upper = 1, .size = 4},
                                          {.lower = 1, .upper = 2, .size = 3},
                                          {.lower = 1, .upper = 2, .size = 4},
                                          {.lower = 0, .upper = 2, .size = 5}};
  std::vector<std::uint32_t> const order{0, 1, 2, 3, 4};
  auto const ground = detail::ground_of<std::int32_t>(records, order, 1);
  detail::skyline_search<std::int32_t> search(ground, {.decompose = false});
  detail::neighbours none(5, ground.sections);
  none.allows.assign(5, std::uint64_t{1} << 63);
  search.start(12, none);
  CHECK(search.run(never) == detail::ruling::impossible);
  none.chance.assign(none.chance.size(), 0.1);
  search.start(12, none);
  CHECK(search.run([](std::int64_t nodes) { return nodes > 1000; }) == detail::ruling::found);
  search.start(12);
  CHECK(search.run(never) == detail::ruling::found);
}

TEST_CASE(
    "guesses prove nothing: where sizes agree by chance and look as if they did not, nothing is called impossible") {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    auto p = scaled(planted({pattern::corners, 80, 20, 1000, 0}, seed), 1009);
    p.records.push_back({.lower = 20, .upper = 21, .size = 1});  // all sizes look as if chosen to the byte
    auto const plan = exact{.capacity = p.capacity, .budget = {.nodes = 40'000}}(p.records);
    CAPTURE(seed);
    REQUIRE(plan.status != plan_status::infeasible);
    REQUIRE_MESSAGE(verify(p.records, plan).ok(), verify(p.records, plan).message());
    REQUIRE(plan.arena_bytes <= p.capacity);
    found += has_offsets(plan);
  }
  CHECK(found > 3);
}
