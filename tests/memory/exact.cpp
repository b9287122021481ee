#include <neap/memory/exact.hpp>

#include "brute_force.hpp"

#include <neap/memory/check.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

namespace {

// Five records, none of whose greedy orders the compiler needs: the exact planner in a constant expression.
struct interval {
  int lower, upper, size;
};
constexpr std::array<interval, 5> five{{{0, 3, 4}, {3, 9, 4}, {0, 9, 4}, {9, 21, 4}, {0, 21, 4}}};
static_assert(exact{}(five).status == plan_status::optimal && exact{}(five).arena_bytes == 12);

}  // namespace

TEST_CASE("the exact planner equals brute force in height and in status") {
  std::mt19937_64 rng(2024);
  int above = 0, infeasible = 0;
  for (int round = 0; round < rounds; ++round) {
    kind const k{round % 2 == 1, round / 2 % 2 == 1, round / 4 % 2 == 1};
    std::vector<usage_record> records;
    std::int64_t optimum = 0, load = 0;
    // Problems whose optimum is the load are many and easy: of each kind, every other one must lie above.
    for (int attempt = 0; attempt < 40; ++attempt) {
      records = random_records(rng, k);
      load = load_lower_bound(records).bytes;
      std::int64_t const most = 40;
      auto only_fixed = records;
      std::erase_if(only_fixed, [](usage_record const& r) { return r.offset == any_offset; });
      optimum = board(only_fixed).fits(most) ? load : -1;
      while (optimum >= 0 && !board(records).fits(optimum)) ++optimum;
      if (round / 8 % 2 == 0 || optimum > load) break;
    }
    exact planner;
    planner.tricks = {round % 3 != 0, round % 5 != 0, round % 7 != 0, round % 11 != 0};
    auto const plan = planner(records);
    if (optimum < 0) {  // fixed records collide
      ++infeasible;
      REQUIRE(plan.status == plan_status::infeasible);
      REQUIRE(plan.why.record >= 0);
      continue;
    }
    above += optimum > load;
    REQUIRE(plan.status == plan_status::optimal);
    REQUIRE(plan.arena_bytes == optimum);
    REQUIRE(plan.lower_bound_bytes == optimum);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    planner.capacity = optimum;
    REQUIRE(has_offsets(planner(records)));
    planner.capacity = optimum - 1;
    REQUIRE(planner(records).status == plan_status::infeasible);
  }
  MESSAGE(rounds << " problems, " << above << " with an optimum above the load, " << infeasible << " infeasible");
  CHECK(above * 3 >= rounds);
}

TEST_CASE("windows in gaps: plans are right, and never called optimal where brute force finds less") {
  std::mt19937_64 rng(5);
  for (int round = 0; round < rounds / 20; ++round) {
    auto records = random_records(rng, {false, true, false});
    for (auto& r : records)
      for (auto& g : r.gaps) g.window_upper = r.size / 2;
    auto const plan = exact{}(records);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    std::int64_t optimum = load_lower_bound(records).bytes;
    while (!board(records).fits(optimum)) ++optimum;
    REQUIRE(plan.arena_bytes >= optimum);
    if (plan.status == plan_status::optimal) REQUIRE(plan.arena_bytes == optimum);
  }
}

TEST_CASE("budgets: nodes and seconds end the search with the best plan; threads do not change it") {
  std::mt19937_64 rng(3);
  std::vector<usage_record> records;
  for (int i = 0; i < 120; ++i) {
    auto const lower = static_cast<std::int64_t>(rng() % 60);
    records.push_back({.lower = lower,
                       .upper = lower + 1 + static_cast<std::int64_t>(rng() % 20),
                       .size = 1 + static_cast<std::int64_t>(rng() % 900)});
  }
  exact short_of_nodes{.budget = {.nodes = 20000}};
  auto const one = short_of_nodes(records);
  CHECK(one.work <= 22000);
  CHECK(verify(records, one).ok());
  short_of_nodes.threads = 3;
  CHECK(short_of_nodes(records) == one);
  auto const in_time = exact{.budget = {.nodes = std::int64_t{1} << 60, .seconds = 0.05}}(records);
  CHECK(verify(records, in_time).ok());
  CHECK(in_time.arena_bytes <= lowest_plateaus{}(records).arena_bytes);
}

TEST_CASE("sizes beyond 32 bits are searched in 64") {
  std::vector<usage_record> records;
  for (int i = 0; i < 8; ++i)
    records.push_back({.lower = i, .upper = i + 4, .size = (std::int64_t{1} << 40) + 7 * i + 1});
  auto const plan = exact{}(records);
  CHECK(plan.status == plan_status::optimal);
  CHECK(verify(records, plan).ok());
}
