#include <neap/memory/combine.hpp>

#include <neap/memory/check/check.hpp>
#include <neap/memory/exact/conflict.hpp>
#include <neap/memory/exact/exact.hpp>
#include <neap/memory/forms/aliases.hpp>
#include <neap/memory/forms/dynamic.hpp>
#include <neap/memory/forms/groups.hpp>

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

using namespace neap;

namespace {

struct interval {
  int lower, upper, size;
};
constexpr std::array<interval, 5> five{{{0, 3, 4}, {3, 9, 4}, {0, 9, 4}, {9, 21, 4}, {0, 21, 4}}};
constexpr auto composed = partitioned(first_optimal(lowest_plateaus{}, within({.nodes = 1000}, exact{})));
static_assert(memory_planner<decltype(composed)>);
static_assert(composed(five).arena_bytes == 12 && composed(five).status == plan_status::optimal);
static_assert(aligned<64>(naive{})(five).offsets[1] == 64);

std::vector<usage_record> random_records(std::mt19937_64& rng, std::size_t n) {
  std::vector<usage_record> records(n);
  for (auto& r : records) {
    r.lower = static_cast<std::int64_t>(rng() % 60);
    r.upper = r.lower + 1 + static_cast<std::int64_t>(rng() % 6);
    r.size = 1 + static_cast<std::int64_t>(rng() % 30);
  }
  return records;
}

}  // namespace

TEST_CASE("laws of the combinators") {
  std::mt19937_64 rng(4);
  for (int round = 0; round < 300; ++round) {
    auto const records = random_records(rng, 3 + rng() % 40);
    CHECK(best_of(greedy_by_size{})(records) == greedy_by_size{}(records));
    auto const both = best_of(greedy_by_size{}, lowest_plateau{})(records);
    CHECK(both.arena_bytes == std::min(greedy_by_size{}(records).arena_bytes, lowest_plateau{}(records).arena_bytes));
    auto const whole = exact{}(records);
    auto const parts = partitioned(exact{})(records);
    CHECK(verify(records, parts).ok());
    CHECK(parts.arena_bytes == whole.arena_bytes);
    CHECK(parts.status == whole.status);
    auto const in_64 = aligned<64>(exact{.budget = {.nodes = 20000}})(records);
    CHECK(verify(records, in_64).ok());
    for (auto offset : in_64.offsets) CHECK(offset % 64 == 0);
    auto const found = first_optimal(lowest_plateaus{}, greedy_by_size{}, exact{})(records);
    CHECK(found.arena_bytes == whole.arena_bytes);
  }
}

TEST_CASE("faults of parts are told with the index in the whole") {
  std::vector<usage_record> records{{0, 1, 1}, {5, 6, 1, 1, 0}, {5, 6, 1, 1, 0}};
  CHECK(partitioned(greedy_by_size{})(records).why.message() == "record 2: it collides with another fixed record");
}

TEST_CASE("a planner that forgets records has no plan, whatever stands around it") {
  auto const forgetful = [](memory_problem const& p) {
    auto plan = naive{}(p);
    plan.offsets.resize(plan.offsets.size() / 2);
    return plan;
  };
  auto const said = [](auto const& plan) {
    CHECK(plan.why.message() == "the planner gave another number of offsets than there are records");
  };
  for (auto const& plan : {improve(forgetful)(five), partitioned(forgetful)(five), plan_with_aliases(five, forgetful),
                           plan_with_groups(five, forgetful)}) {
    CHECK(!has_offsets(plan));
    said(plan);
  }
  std::vector<dynamic_record> const growing{{0, 2, {4, 1}}, {1, 3, {2, 3}}};
  said(plan_dynamic(growing, 1, 8, 1, forgetful));
}

TEST_CASE("an infeasible capacity is explained by records none of which can be left out") {
  std::mt19937_64 rng(9);
  int searched = 0;
  for (int round = 0; round < 200; ++round) {
    auto records = random_records(rng, 20);
    for (auto& r : records) r.alignment = rng() % 3 == 0 ? 8 : 1;
    auto const optimum = exact{}(records).arena_bytes;
    auto const plan = explain_infeasible(records, optimum - 1);
    REQUIRE(plan.status == plan_status::infeasible);
    REQUIRE(!plan.conflict.empty());
    searched += optimum > load_lower_bound(records).bytes;
    std::vector<usage_record> subset;
    for (auto i : plan.conflict) subset.push_back(records[i]);
    CHECK(exact{.capacity = optimum - 1}(subset).status == plan_status::infeasible);
    for (std::size_t k = 0; k < subset.size(); ++k) {
      auto fewer = subset;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(k));
      CHECK(has_offsets(exact{.capacity = optimum - 1}(fewer)));
    }
  }
  CHECK(searched > 0);
  CHECK(has_offsets(explain_infeasible(five, 12)));
}
