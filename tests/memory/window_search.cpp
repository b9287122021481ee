#include <neap/memory/exact/window_search.hpp>

#include "brute_force.hpp"

#include <neap/memory/bounds.hpp>
#include <neap/memory/check/check.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

TEST_CASE("decided alone, every capacity around the optimum: found exactly where brute force finds a place") {
  std::mt19937_64 rng(77);
  int possible = 0, impossible = 0;
  for (int round = 0; round < rounds / 10; ++round) {
    auto records = random_records(rng, {round % 2 == 1, round / 2 % 2 == 1, round / 4 % 2 == 1, round / 8 % 2 == 1});
    if (rng() % 4 == 0) records.push_back(records[0]), records.push_back(records[0]);  // twins
    memory_problem const problem(records);
    detail::window_search decide(problem);
    std::int64_t const load = load_of(records);
    for (auto capacity = load > 0 ? load - 1 : 0; capacity < load + 4; ++capacity) {
      CAPTURE(round);
      std::int64_t nodes = 0;
      memory_plan plan;
      plan.offsets.assign(records.size(), 0);
      for (std::size_t i = 0; i < records.size(); ++i)
        if (records[i].offset != any_offset) plan.offsets[i] = records[i].offset;
      auto const answer = decide(capacity, INT64_MAX, {}, nodes, plan.offsets);
      REQUIRE(answer == (board(records).fits(capacity) ? detail::feasibility::yes : detail::feasibility::no));
      REQUIRE(nodes >= 1);
      possible += answer == detail::feasibility::yes, impossible += answer != detail::feasibility::yes;
      if (answer != detail::feasibility::yes) continue;
      plan.arena_bytes = capacity;
      REQUIRE_MESSAGE(verify(problem, plan).ok(), verify(problem, plan).message());
    }
  }
  CHECK(possible > rounds / 10);
  CHECK(impossible > rounds / 10);
}

TEST_CASE("a budget ends it; the same search decides again afterwards") {
  std::mt19937_64 rng(78);
  std::vector<usage_record> records;
  for (int i = 0; i < 40; ++i) {
    auto const lower = static_cast<std::int64_t>(rng() % 20);
    records.push_back({.lower = lower, .upper = lower + 9, .size = 5 + static_cast<std::int64_t>(rng() % 50)});
    records.back().gaps.push_back({lower + 3, lower + 5, 0, 5});
  }
  memory_problem const problem(records);
  detail::window_search decide(problem);
  std::vector<std::int64_t> offsets(records.size(), 0);
  std::int64_t nodes = 0, total = 0;
  for (auto const& r : records) total += r.size;
  CHECK(decide(load_lower_bound(problem).bytes, 200, {}, nodes, offsets) != detail::feasibility::no);
  CHECK(nodes <= 1000);
  CHECK(decide(total, 1'000'000, {}, nodes, offsets) == detail::feasibility::yes);
  CHECK(decide(load_lower_bound(problem).bytes - 1, 1'000'000, {}, nodes, offsets) == detail::feasibility::no);
}
