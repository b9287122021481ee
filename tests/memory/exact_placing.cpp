#include <neap/memory/exact_placing.hpp>

#include <neap/memory/check/check.hpp>
#include <neap/memory/exact/exact.hpp>
#include <neap/memory/greedy/greedy_by_size.hpp>
#include <neap/memory/planner.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace neap;

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

/// As in a training step: half of what is made lives until its turn on the way back, some a while, most a moment.
std::vector<usage_record> records_of_a_step(std::mt19937_64& rng, std::int64_t count) {
  auto const below = [&](std::int64_t n) { return static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(n)); };
  std::vector<usage_record> records(static_cast<std::size_t>(count));
  for (auto& r : records) {
    auto const at = below(count);
    auto const kind = below(4);
    r.lower = at;
    r.upper = 1 + (kind == 0 ? at + 1 : kind == 1 ? at + below(8) : std::max(at, 2 * count - at));
    r.size = (1 + below(6)) * (below(3) ? 1'000'000 : 4);
    if (count % 2) r.alignment = 64;
  }
  return records;
}

}  // namespace

TEST_CASE("what plans are placed with is never above another planner at the same effort, nor below what it proves") {
  std::mt19937_64 rng(11);
  int loose = 0, better = 0;
  for (int round = 0; round < testing::cases(600); ++round) {
    auto const records = records_of_a_step(rng, 20 + 3 * (round % 25));
    memory_problem const p(records);
    constexpr std::int64_t nodes = 3000;
    auto const plan = detail::exact_placing{nodes, endless}(p);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    auto const quick = default_planner{}(p);
    CHECK(plan.arena_bytes <= quick.arena_bytes);
    CHECK(plan.arena_bytes <= greedy_by_size{}(p).arena_bytes);
    CHECK(plan.arena_bytes <= exact{.budget = {.nodes = nodes}}(p).arena_bytes);
    CHECK(plan.arena_bytes >= plan.lower_bound_bytes);
    CHECK((plan.status == plan_status::optimal) == (plan.arena_bytes == plan.lower_bound_bytes));
    loose += quick.status != plan_status::optimal, better += plan.arena_bytes < quick.arena_bytes;
  }
  CHECK(loose > 0);
  CHECK(better > 0);
}

TEST_CASE("more records than the search takes are placed all the same, without seconds, too") {
  std::mt19937_64 rng(3);
  auto const records = records_of_a_step(rng, 3001);
  memory_problem const p(records);
  for (double seconds : {0.0, endless}) {
    auto const plan = detail::exact_placing{100, seconds}(p);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    CHECK(plan.arena_bytes <= default_planner{}(p).arena_bytes);
  }
}
