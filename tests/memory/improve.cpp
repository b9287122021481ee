#include <neap/memory/greedy/improve.hpp>

#include <neap/memory/check/check.hpp>
#include <neap/memory/combine.hpp>
#include <neap/memory/exact/exact.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;

namespace {

static_assert(memory_planner<improved<naive>>);

struct interval {
  int lower, upper, size;
};
// The naive plan of 20 bytes becomes the optimum of 12 at compile time.
constexpr std::array<interval, 5> five{{{0, 3, 4}, {3, 9, 4}, {0, 9, 4}, {9, 21, 4}, {0, 21, 4}}};
static_assert(improve(naive{})(five).arena_bytes == 12 && improve(naive{})(five).status == plan_status::optimal);
static_assert(within({.placements = 0}, improve(naive{}))(five).arena_bytes == 20);

std::vector<usage_record> random_records(std::mt19937_64& rng, std::size_t n, int kind) {
  std::vector<usage_record> records(n);
  for (auto& r : records) {
    r.lower = static_cast<std::int64_t>(rng() % (n + 1));
    r.upper = r.lower + 1 + static_cast<std::int64_t>(rng() % 12);
    r.size = static_cast<std::int64_t>(rng() % 30);
    if (kind & 1) r.alignment = 1 + static_cast<std::int64_t>(rng() % 4);
    if (kind & 2 && rng() % 3 == 0 && r.upper - r.lower > 3)
      r.gaps.push_back({r.lower + 1, r.lower + 3, 0, static_cast<std::int64_t>(rng() % 2) * r.size / 2});
    if (kind & 4 && rng() % 20 == 0) r.offset = static_cast<std::int64_t>(rng() % 10) * r.alignment;
  }
  return records;
}

}  // namespace

TEST_CASE("never worse than its planner, right, and the same again") {
  std::mt19937_64 rng(8);
  int better = 0, optimal = 0;
  for (int round = 0; round < neap::testing::cases(500); ++round) {
    auto const records = random_records(rng, rng() % 50, round % 8);
    auto const check = [&](auto const& planner) {
      auto const before = planner(records);
      improve_budget const budget{static_cast<std::int64_t>(rng() % 3000)};
      auto const after = improve(planner, budget)(records);
      if (!has_offsets(before) || before.status == plan_status::optimal) {
        CHECK(after == before);
        return;
      }
      REQUIRE_MESSAGE(verify(records, after).ok(), verify(records, after).message());
      CHECK(after.arena_bytes <= before.arena_bytes);
      CHECK(after.lower_bound_bytes == before.lower_bound_bytes);
      CHECK((after.status == plan_status::optimal) == (after.arena_bytes == after.lower_bound_bytes));
      CHECK(after.work - before.work <= budget.placements + static_cast<std::int64_t>(records.size()));
      CHECK(improve(planner, budget)(records) == after);
      CHECK(within(budget, improve(planner))(records) == after);
      better += after.arena_bytes < before.arena_bytes;
      optimal += after.status == plan_status::optimal;
    };
    check(naive{});
    check(greedy_by_size{});
    check(first_fit{});
    if (!(round & 4)) check(lowest_plateau{});
  }
  CHECK(better > neap::testing::cases(250));
  CHECK(optimal > neap::testing::cases(150));
}

TEST_CASE("no better than the optimum, and mostly there") {
  std::mt19937_64 rng(9);
  int reached = 0, rounds = 0;
  for (int round = 0; round < 200; ++round) {
    auto const records = random_records(rng, 8 + rng() % 10, 0);
    auto const best = exact{}(records);
    if (best.status != plan_status::optimal) continue;
    auto const plan = improve(lowest_plateau{}, {.placements = 2000})(records);
    CHECK(plan.arena_bytes >= best.arena_bytes);
    ++rounds, reached += plan.arena_bytes == best.arena_bytes;
  }
  CHECK(rounds > 150);
  CHECK(10 * reached > 9 * rounds);
}

TEST_CASE("windows of a long problem are improved where they lie") {
  // Many crowded moments far apart, more records than one window holds.
  std::mt19937_64 rng(12);
  std::vector<usage_record> records;
  for (int i = 0; i < 30000; ++i) {
    auto const lower = static_cast<std::int64_t>(rng() % 6000);
    auto const length = 1 + static_cast<std::int64_t>(rng() % 200);
    records.push_back({.lower = lower,
                       .upper = lower + (rng() % 4 ? 1 + length % 20 : length),
                       .size = std::int64_t{64} << (rng() % 8)});
  }
  auto const before = lowest_plateau{}(records);
  auto const after = improve(lowest_plateau{}, {.placements = 100'000})(records);
  CHECK(verify(records, after).ok());
  CHECK(after.arena_bytes < before.arena_bytes);
  CHECK(after.work <= 130'000);
  CHECK(improve(lowest_plateau{}, {.placements = 100'000})(records) == after);
}
