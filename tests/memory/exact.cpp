#include <neap/memory/exact/exact.hpp>

#include "brute_force.hpp"

#include <neap/memory/check/check.hpp>
#include <neap/memory/exact_placing.hpp>

#include "../support/packings.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

namespace {

/// `count` records within so many moments; in each third round they are aligned, in each other third some have a gap.
std::vector<usage_record> some_records(std::mt19937_64& rng, int round, std::uint64_t count, std::uint64_t moments,
                                       std::uint64_t longest, std::uint64_t largest) {
  std::vector<usage_record> records;
  for (auto n = count; n > 0; --n) {
    auto const lower = static_cast<std::int64_t>(rng() % moments);
    records.push_back({.lower = lower,
                       .upper = lower + 1 + static_cast<std::int64_t>(rng() % longest),
                       .size = 1 + static_cast<std::int64_t>(rng() % largest)});
    if (round % 3 == 1) records.back().alignment = 16;
    if (round % 3 == 2 && rng() % 4 == 0 && records.back().upper > lower + 2)
      records.back().gaps.push_back({lower + 1, lower + 2, 0, 0});
  }
  return records;
}

}  // namespace

TEST_CASE("the exact planner equals brute force in height and in status") {
  std::mt19937_64 rng(2024);
  int above = 0, infeasible = 0, raised = 0;
  for (int round = 0; round < rounds; ++round) {
    kind const k{round % 2 == 1, round / 2 % 2 == 1, round / 4 % 2 == 1};
    std::vector<usage_record> records;
    std::int64_t optimum = 0, load = 0;
    // Problems whose optimum is the load are many and easy: of each kind, every other one must lie above.
    for (int attempt = 0; attempt < 40; ++attempt) {
      records = random_records(rng, k);
      load = load_of(records);
      std::int64_t const most = 40;
      auto only_fixed = records;
      std::erase_if(only_fixed, [](usage_record const& r) { return r.offset == any_offset; });
      optimum = board(only_fixed).fits(most) ? load : -1;
      while (optimum >= 0 && !board(records).fits(optimum)) ++optimum;
      if (round / 8 % 2 == 0 || optimum > load_lower_bound(records).bytes) break;
    }
    exact planner;
    planner.tricks = {round % 3 != 0, round % 5 != 0, round % 7 != 0, round % 11 != 0, round % 13 != 0};
    auto const plan = planner(records);
    if (optimum < 0) {  // fixed records collide
      ++infeasible;
      REQUIRE(plan.status == plan_status::infeasible);
      REQUIRE(plan.why.record >= 0);
      continue;
    }
    auto const bound = load_lower_bound(records).bytes;
    REQUIRE(bound >= load);
    REQUIRE(bound <= optimum);
    above += optimum > bound, raised += bound > load;
    REQUIRE(plan.status == plan_status::optimal);
    REQUIRE(plan.arena_bytes == optimum);
    REQUIRE(plan.lower_bound_bytes == optimum);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    planner.capacity = optimum;
    REQUIRE(has_offsets(planner(records)));
    planner.capacity = optimum - 1;
    REQUIRE(planner(records).status == plan_status::infeasible);
  }
  MESSAGE(rounds << " problems, " << above << " with an optimum above the bound, " << raised
                 << " with a bound above the load, " << infeasible << " infeasible");
  CHECK(above * 3 >= rounds);
  CHECK(raised * 20 >= rounds);
}

TEST_CASE("records that hang in the air: lifted at once as one by one, where small ones lie between large ones") {
  std::mt19937_64 rng(31);
  auto const below = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng() % n); };
  int above = 0;
  for (int round = 0; round < rounds / 10; ++round) {
    std::vector<usage_record> records(6 + rng() % 5);
    for (auto& r : records) {
      r.lower = below(11);
      r.upper = r.lower + 1 + below(6);
      r.size = rng() % 2 ? 1 + below(3) : 20 + below(30);
      if (round % 3 == 0 && rng() % 3 == 0) r.alignment = 2 + below(3);
      if (round % 4 == 0 && r.upper - r.lower > 2 && rng() % 2) r.gaps.push_back({r.lower + 1, r.lower + 2, 0, 0});
    }
    search_tricks const alone{.skyline = false};
    auto other = alone;
    other.lift_at_once = false;
    auto const plan = exact{.tricks = alone}(records), one_by_one = exact{.tricks = other}(records);
    REQUIRE(plan.status == plan_status::optimal);
    REQUIRE(one_by_one.status == plan_status::optimal);
    REQUIRE(plan.arena_bytes == one_by_one.arena_bytes);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    auto const whole = exact{}(records);
    REQUIRE(whole.status == plan_status::optimal);
    REQUIRE(whole.arena_bytes == plan.arena_bytes);
    above += plan.arena_bytes > load_lower_bound(records).bytes;
  }
  CHECK(above > rounds / 500);
}

TEST_CASE("small records do not lift each other byte by byte") {
  // Where the first guess is wrong, small ones that meet hang in the air together: each could lie on the other, up to the
  // capacity. One by one that takes some 10^11 lifts.
  constexpr std::int64_t large = 1'000'000;
  std::vector<usage_record> records;
  for (auto const [lower, upper, size] : {std::array<std::int64_t, 3>{8, 13, 114566 * large},
                                          {2, 4, 161120 * large},
                                          {6, 8, 1},
                                          {6, 7, 3},
                                          {11, 15, 136008 * large},
                                          {10, 11, 176654 * large},
                                          {8, 9, 166876 * large},
                                          {0, 6, 185411 * large},
                                          {0, 4, 2},
                                          {3, 7, 122198 * large},
                                          {10, 15, 128019 * large},
                                          {5, 7, 1},
                                          {11, 13, 152055 * large},
                                          {6, 11, 112384 * large}}) {
    records.emplace_back();
    records.back().lower = lower, records.back().upper = upper, records.back().size = size;
  }
  auto const plan = exact{.tricks = {.skyline = false}}(records);
  CHECK(plan.status == plan_status::optimal);
  CHECK(plan.work < 10'000);
}

TEST_CASE("a failure goes back past what was placed elsewhere, and proves the same") {
  std::mt19937_64 rng(5);
  search_tricks const alone{.decompose = false, .skyline = false, .first_run = 1};
  auto other = alone;
  other.backjump = false;
  int above = 0, proved = 0, proved_without = 0;
  for (int round = 0; round < rounds / 10; ++round) {
    auto records = some_records(rng, round, 9, 6, 4, 9);
    auto const plan = exact{.tricks = alone}(records), one_by_one = exact{.tricks = other}(records);
    REQUIRE(plan.status == plan_status::optimal);
    REQUIRE(one_by_one.status == plan_status::optimal);
    REQUIRE(plan.arena_bytes == one_by_one.arena_bytes);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    if (round % 3 == 2 || plan.arena_bytes == load_lower_bound(records).bytes) continue;
    ++above;
    // The same with others later, which can lie in many ways.
    for (std::int64_t n = 0; n < 12; ++n) records.push_back({.lower = 10 + n, .upper = 13 + n, .size = 1});
    auto const below = plan.arena_bytes - 1;
    auto const with = exact{.capacity = below, .budget = {.nodes = 20'000}, .tricks = alone}(records);
    auto const without = exact{.capacity = below, .budget = {.nodes = 20'000}, .tricks = other}(records);
    REQUIRE(!has_offsets(with));
    REQUIRE(!has_offsets(without));
    proved += with.status == plan_status::infeasible, proved_without += without.status == plan_status::infeasible;
  }
  MESSAGE(above << " above the bound; proved beside others " << proved << ", and without blame " << proved_without);
  CHECK(proved > 2 * proved_without);
}

TEST_CASE("records whose gaps cover their lives are in nobody's way") {
  std::vector<usage_record> four{{.lower = 0, .upper = 3, .size = 5, .alignment = 16, .gaps = {{0, 3, 0, 0}}},
                                 {.lower = 0, .upper = 1, .size = 1, .alignment = 16},
                                 {.lower = -2, .upper = 1, .size = 20, .alignment = 6},
                                 {.lower = -2, .upper = -1, .size = 10, .alignment = 16}};
  CHECK(exact{}(four).arena_bytes == 32);
  CHECK(has_offsets(exact{.capacity = 32}(four)));
  four[0].size = 50;  // but it has its place
  CHECK(exact{}(four).arena_bytes == 50);
  std::mt19937_64 rng(31);
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    auto records = some_records(rng, round, 3 + rng() % 5, 6, 4, 12);
    auto const without = exact{}(records);
    REQUIRE(without.status == plan_status::optimal);
    auto const more = 1 + rng() % 3;
    std::int64_t largest = 0;
    for (std::uint64_t k = 0; k < more; ++k) {
      auto const lower = static_cast<std::int64_t>(rng() % 6), upper = lower + 1 + static_cast<std::int64_t>(rng() % 5);
      auto const size = 1 + static_cast<std::int64_t>(rng() % 14);
      records.insert(records.begin() + static_cast<std::ptrdiff_t>(rng() % (records.size() + 1)),
                     {.lower = lower, .upper = upper, .size = size, .gaps = {{lower, upper, 0, 0}}});
      largest = std::max(largest, size);
    }
    auto const with = exact{}(records);
    REQUIRE(verify(memory_problem(records), with).ok());
    CHECK(with.status == plan_status::optimal);
    CHECK(with.arena_bytes == std::max(without.arena_bytes, largest));
  }
}

TEST_CASE("windows in gaps: equal to brute force, where whole records would need more") {
  std::mt19937_64 rng(5);
  int above = 0, better = 0, infeasible = 0;
  int const some = rounds / 5;
  for (int round = 0; round < some; ++round) {
    kind const k{round % 2 == 1, true, round / 2 % 2 == 1, true};
    std::vector<usage_record> records;
    std::int64_t optimum = 0, load = 0;
    for (int attempt = 0; attempt < 40; ++attempt) {
      records = random_records(rng, k);
      load = load_of(records);
      auto only_fixed = records;
      std::erase_if(only_fixed, [](usage_record const& r) { return r.offset == any_offset; });
      optimum = board(only_fixed).fits(40) ? load : -1;
      while (optimum >= 0 && !board(records).fits(optimum)) ++optimum;
      if (round / 8 % 2 == 0 || optimum > load) break;
    }
    exact planner;
    auto const plan = planner(records);
    if (optimum < 0) {
      ++infeasible;
      REQUIRE(plan.status == plan_status::infeasible);
      continue;
    }
    REQUIRE(load_lower_bound(records).bytes <= optimum);
    above += optimum > load_lower_bound(records).bytes;
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    REQUIRE(plan.status == plan_status::optimal);
    REQUIRE(plan.arena_bytes == optimum);
    planner.capacity = optimum - 1;
    REQUIRE(planner(records).status == plan_status::infeasible);
    auto whole = records;
    for (auto& r : whole) std::erase_if(r.gaps, [](live_gap const& g) { return g.window_upper > g.window_lower; });
    better += load_of(whole) > optimum;
  }
  MESSAGE(some << " problems, " << above << " with an optimum above the bound, " << better
               << " below what whole records need, " << infeasible << " infeasible");
  CHECK(above * 3 >= some);
  CHECK(better * 100 >= some);
}

TEST_CASE("windows: above and below in turn, at one offset") {
  // Each uses the half that the other leaves: 10 bytes for both, 20 without windows.
  std::vector<usage_record> const halves{{.upper = 4, .size = 10, .gaps = {{0, 2, 0, 5}, {2, 4, 5, 10}}},
                                         {.upper = 4, .size = 10, .gaps = {{0, 2, 5, 10}, {2, 4, 0, 5}}}};
  auto const plan = exact{}(halves);
  CHECK(plan.status == plan_status::optimal);
  CHECK(plan.arena_bytes == 10);
  CHECK_MESSAGE(verify(halves, plan).ok(), verify(halves, plan).message());
  std::mt19937_64 rng(6);
  std::vector<usage_record> many;  // a budget ends the search; the plan stays right
  for (int i = 0; i < 60; ++i) {
    auto const lower = static_cast<std::int64_t>(rng() % 40), size = 8 + static_cast<std::int64_t>(rng() % 90);
    many.push_back({.lower = lower, .upper = lower + 12, .size = size, .gaps = {{lower + 4, lower + 8, 0, size / 2}}});
  }
  auto const cut = exact{.budget = {.nodes = 20000}}(many);
  CHECK(cut.work <= 24000);
  CHECK_MESSAGE(verify(many, cut).ok(), verify(many, cut).message());
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
  constexpr auto endless = std::numeric_limits<std::int64_t>::max();
  auto const in_time = exact{.budget = {.nodes = endless, .seconds = 0.05}}(records);
  CHECK(verify(records, in_time).ok());
  CHECK(in_time.arena_bytes <= lowest_plateaus{}(records).arena_bytes);
}

TEST_CASE("budgets: where one order's first descent finds the answer, nodes for little more find it") {
  std::mt19937_64 rng(5);
  int found = 0;
  for (int round = 0; round < 60; ++round) {
    std::int64_t const n = 200 + 10 * (round % 20);
    std::vector<usage_record> records;
    for (std::int64_t i = 0; i < n; ++i) {
      auto const at = static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(n));
      auto const life = 1 + static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(rng() % 3 ? 12 : n));
      records.push_back({.lower = at, .upper = at + life, .size = std::int64_t{1} << rng() % 8});
    }
    auto const best = exact{}(records);
    if (best.status != plan_status::optimal || best.work < n || best.work > n + n / 4) continue;
    for (unsigned threads : {1u, 3u}) {
      auto const plan = exact{.budget = {.nodes = 2 * n}, .threads = threads}(records);
      CHECK(plan.status == plan_status::optimal);
      CHECK(plan.work == best.work);
    }
    ++found;
  }
  CHECK(found > 5);
}

TEST_CASE("budgets: searches that have nothing to do take no nodes from the others, and the budget ends") {
  std::mt19937_64 rng(23);
  int spent = 0;
  for (int round = 0; round < (neap::testing::sanitized ? 1 : 6); ++round) {
    std::vector<usage_record> records;  // much is free at most moments
    for (std::int64_t i = 0; i < 1100; ++i) {
      auto const at = static_cast<std::int64_t>(rng() % 300);
      auto const life = 1 + static_cast<std::int64_t>(rng() % (rng() % 4 ? 5 : 200));
      records.push_back({.lower = at, .upper = at + life, .size = 1 + static_cast<std::int64_t>(rng() % 5000)});
    }
    memory_problem const p(records);
    std::int64_t const nodes = 4000 + 7000 * round;
    for (unsigned threads : {1u, 2u}) {
      auto const plan = exact{.capacity = load_lower_bound(p).bytes, .budget = {.nodes = nodes}, .threads = threads}(p);
      CHECK(plan.work <= nodes + nodes / 4);
      spent += plan.status == plan_status::budget_spent;
    }
  }
  CHECK(spent > (neap::testing::sanitized ? 0 : 3));
}

TEST_CASE("of more records than a search has room for, the plan is the default planner's") {
  std::mt19937_64 rng(29);
  std::vector<usage_record> records;
  for (std::size_t i = 0; i <= exact::max_records; ++i) {
    auto const at = static_cast<std::int64_t>(rng() % 2000);
    records.push_back({.lower = at,
                       .upper = at + 1 + static_cast<std::int64_t>(rng() % 2000),
                       .size = 64 + static_cast<std::int64_t>(rng() % 90'000)});
  }
  auto const quick = default_planner{}(records);
  CHECK(quick.status == plan_status::feasible);
  CHECK(exact{}(records) == quick);
  if (neap::testing::sanitized) return;
  auto const within = exact{.capacity = quick.lower_bound_bytes}(records);
  CHECK(within.status == plan_status::budget_spent);
  CHECK(exact{.capacity = quick.arena_bytes}(records).offsets == quick.offsets);
}

TEST_CASE("never worse than the default planner, whatever the budget in nodes") {
  std::mt19937_64 rng(31);
  int better = 0;
  for (int round = 0; round < 60; ++round) {
    auto const records = some_records(rng, round, 20 + rng() % 100, 60, 20, 900);
    auto const quick = default_planner{}(records);
    auto const plan = exact{.budget = {.nodes = 1 + static_cast<std::int64_t>(rng() % 3000)}}(records);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    REQUIRE(plan.arena_bytes <= quick.arena_bytes);
    better += plan.arena_bytes < quick.arena_bytes;
  }
  CHECK(better > 0);
}

TEST_CASE("what places plans answers as the exact planner on one thread, where that ends") {
  std::mt19937_64 rng(37);
  int searched = 0;
  for (int round = 0; round < rounds / 10; ++round) {
    auto const records = some_records(rng, round, 5 + rng() % 40, 30, 12, 300);
    auto const nodes = 1 + static_cast<std::int64_t>(rng() % 20'000);
    memory_problem const p(records);
    auto const expected = exact{.budget = {.nodes = nodes}}(p);
    if (expected.status == plan_status::feasible) continue;  // then it improves for a while: exact_placing.cpp
    auto const plan = detail::exact_placing{nodes, 1e9}(p);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    REQUIRE(plan.offsets == expected.offsets);
    REQUIRE(plan.status == expected.status);
    REQUIRE(plan.lower_bound_bytes == expected.lower_bound_bytes);
    REQUIRE(plan.work == expected.work);
    searched += plan.work > 0;
  }
  CHECK(searched > 0);
}

TEST_CASE("alignments far above the sizes: the bound counts whole steps") {
  std::mt19937_64 rng(8);
  std::vector<usage_record> records;
  for (int i = 0; i < 400; ++i) {
    auto const lower = static_cast<std::int64_t>(rng() % 300);
    records.push_back({.lower = lower,
                       .upper = lower + 1 + static_cast<std::int64_t>(rng() % 40),
                       .size = 1 + static_cast<std::int64_t>(rng() % 64),
                       .alignment = 4096});
  }
  auto const bound = load_lower_bound(records);
  std::int64_t alive = 0, least = 64;
  for (auto const& r : records)
    if (r.lower <= bound.moment && bound.moment < r.upper) ++alive, least = std::min(least, r.size);
  CHECK(bound.bytes == (alive - 1) * 4096 + least);
  auto const plan = exact{.budget = {.nodes = 100000}}(records);
  CHECK(plan.arena_bytes < alive * 4096);
  CHECK_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
  for (auto& r : records)  // others of any offset fill the waste, and count beside it
    if (rng() % 2) r.alignment = 1;
  auto const mixed = load_lower_bound(records);
  CHECK(mixed.bytes < bound.bytes);
  CHECK(mixed.bytes <= default_planner{}(records).arena_bytes);
}

TEST_CASE("sizes beyond 32 bits") {
  std::vector<usage_record> records;
  for (int i = 0; i < 8; ++i)
    records.push_back({.lower = i, .upper = i + 4, .size = (std::int64_t{1} << 40) + 7 * i + 1});
  auto const plan = exact{}(records);
  CHECK(plan.status == plan_status::optimal);
  CHECK(verify(records, plan).ok());
}
