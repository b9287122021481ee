#include <neap/memory/guess/planar_search.hpp>

#include "brute_force.hpp"

#include <neap/memory/check/check.hpp>
#include <neap/memory/exact/exact.hpp>
#include <neap/memory/packing_guesses.hpp>

#include "../support/packings.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap::testing;
using namespace neap_memory_test;

namespace {

/// The answer of the search alone, within so many nodes; plans are checked.
bool finds(std::vector<usage_record> const& records, std::int64_t capacity, std::int64_t nodes) {
  memory_problem const problem(records);
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < records.size(); ++i) order.push_back(i);
  auto const packing = neap::detail::packing_problem_of(problem, order, 1);
  neap::detail::planar_search search(packing);
  search.start(capacity);
  auto const fits = search.run(neap::detail::stop_condition::after_nodes(nodes));
  REQUIRE(fits != neap::detail::feasibility::no);
  if (fits != neap::detail::feasibility::yes) return false;
  memory_plan plan;
  for (std::size_t i = 0; i < records.size(); ++i) plan.offsets.push_back(search.offset(i));
  for (std::size_t i = 0; i < records.size(); ++i)
    plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[i] + records[i].size);
  REQUIRE_MESSAGE(verify(problem, plan).ok(), verify(problem, plan).message());
  REQUIRE(plan.arena_bytes <= capacity);
  return true;
}

}  // namespace

TEST_CASE("planted packings of 150 records in 20 moments are found, full or with holes") {
  int found = 0, asked = 0;
  for (auto kind : {pattern::guillotine, pattern::pinwheel, pattern::slabs})
    for (double holes : {0.0, 0.05})
      for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(cases(20)) / 2; ++seed, ++asked) {
        auto const p = planted({kind, 150, 20, 4096, holes}, seed);
        found += finds(p.records, p.capacity, 40'000);
      }
  CAPTURE(asked);
  CHECK(3 * found > 2 * asked);
}

TEST_CASE("what no search from an end finds is found from other sections, each told what the others hold likely") {
  // Pinwheels and corners, of which searches from the ends alone find less than half within as many nodes.
  struct drawn {
    pattern kind;
    std::uint64_t seed;
  };
  int found = 0, asked = 0;
  for (auto [kind, seed] : {drawn{pattern::pinwheel, 2}, drawn{pattern::pinwheel, 3}, drawn{pattern::pinwheel, 9},
                            drawn{pattern::pinwheel, 18}, drawn{pattern::pinwheel, 27}, drawn{pattern::pinwheel, 31},
                            drawn{pattern::corners, 32}, drawn{pattern::corners, 50}, drawn{pattern::corners, 56},
                            drawn{pattern::corners, 59}, drawn{pattern::slabs, 34}, drawn{pattern::slabs, 46}}) {
    if (testing::sanitized && asked == 2) break;
    ++asked, found += finds(planted({kind, 150, 20, 4096, 0.05}, seed).records, 4096, 110'000);
  }
  CHECK(3 * found > 2 * asked);
}

TEST_CASE("what is found is a packing: planted ones, and such with two sizes exchanged") {
  std::mt19937_64 rng(17);
  int found = 0;
  for (int round = 0; round < rounds / 10; ++round) {
    // Few records in few moments, full or nearly, planted or changed so that there may be none.
    auto p = planted(
        {static_cast<pattern>(rng() % 4), 12, 5, 9 + static_cast<std::int64_t>(rng() % 8), rng() % 2 == 0 ? 0.0 : 0.1},
        rng());
    if (round % 2 == 1 && p.records.size() > 2) {
      auto& a = p.records[0];
      auto& b = p.records[1];
      std::swap(a.size, b.size);
    }
    std::int64_t const capacity = std::max(p.capacity, load_of(p.records));
    found += finds(p.records, capacity, 3'000);
  }
  CHECK(found > rounds / 30);
}

TEST_CASE("the planar search is left out where it is not for a problem") {
  std::vector<usage_record> const records{{.lower = 0, .upper = 2, .size = 3}, {.lower = 1, .upper = 3, .size = 4}};
  CHECK(!finds(records, 100, 1000));  // nearly all is free
  CHECK(!finds(records, 6, 1000));    // less than is alive at once
}

TEST_CASE("with and without the planar search: the same least arena") {
  std::mt19937_64 rng(18);
  for (int round = 0; round < rounds / 20; ++round) {
    auto const records = random_records(rng, {false, false, false});
    auto const with = exact{.guesser = &planar_packings}(records), without = exact{}(records);
    REQUIRE(with.status == without.status);
    REQUIRE(with.arena_bytes == without.arena_bytes);
  }
}
