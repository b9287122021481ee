#include <neap/memory/exact/canonical_search.hpp>

#include "brute_force.hpp"

#include <neap/memory/check/check.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

namespace {

detail::packing_problem packed(memory_problem const& p, std::vector<std::uint32_t>& order) {
  order.clear();
  for (std::uint32_t i = 0; i < p.count(); ++i)
    if (p.ever_holds(i)) order.push_back(i);
  return detail::packing_problem_of(p, order, detail::granularity(p));
}

}  // namespace

TEST_CASE("decided alone, with and without restarts: yes exactly where brute force finds a place") {
  std::mt19937_64 rng(92);
  int possible = 0, impossible = 0;
  constexpr int tries = testing::cases(rounds / 8);
  for (int round = 0; round < tries; ++round) {
    auto records = random_records(rng, {round % 2 == 1, round / 2 % 2 == 1, round / 4 % 4 == 3});
    if (rng() % 4 == 0) records.push_back(records[0]), records.push_back(records[0]);  // twins
    memory_problem const p(records);
    std::vector<std::uint32_t> order;
    auto const problem = packed(p, order);
    auto const unit = detail::granularity(p);
    search_tricks tricks{.decompose = round % 3 != 0,
                         .bound_after_lift = round % 5 != 0,
                         .lift = round % 7 != 0,
                         .twins = round % 11 != 0,
                         .backjump = round % 13 != 0,
                         .first_run = static_cast<std::int64_t>(rng() % 4)};
    detail::canonical_search search(problem, tricks, round % 4 < 2);
    auto const load = load_of(records);
    for (auto capacity = load > 0 ? load - 1 : 0; capacity < load + 3; ++capacity) {
      CAPTURE(round);
      search.start(capacity / unit);
      auto fits = detail::feasibility::unknown;
      while (fits == detail::feasibility::unknown)  // in slices: resumed, it decides the same
        fits = search.run(detail::stop_condition::after_nodes(search.nodes() + 1 + round % 5));
      bool const expected = board(records).fits(capacity);
      REQUIRE(fits == (expected ? detail::feasibility::yes : detail::feasibility::no));
      possible += expected, impossible += !expected;
      if (!expected) continue;
      memory_plan plan;
      plan.arena_bytes = capacity;
      plan.offsets.assign(p.count(), 0);
      for (std::size_t i = 0; i < p.count(); ++i)
        if (p.fixed_of(i) != any_offset) plan.offsets[i] = p.fixed_of(i);
      for (std::size_t k = 0; k < order.size(); ++k) plan.offsets[order[k]] = search.offset(k) * unit;
      REQUIRE_MESSAGE(verify(p, plan).ok(), verify(p, plan).message());
    }
  }
  CHECK(possible > tries / 2);
  CHECK(impossible > tries / 2);
}

TEST_CASE("the bound: a section whose lowest limit and bytes pass the roof, as counted section by section") {
  std::mt19937_64 rng(93);
  int broken = 0, kept = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<usage_record> records;
    for (auto n = 1 + rng() % 12; n > 0; --n) {
      auto const lower = static_cast<std::int64_t>(rng() % 90);
      records.push_back({.lower = lower,
                         .upper = lower + 2 + static_cast<std::int64_t>(rng() % 40),
                         .size = 1 + static_cast<std::int64_t>(rng() % 9)});
      if (round % 3 == 0) records.back().gaps.push_back({lower + 1, lower + 2, 0, 0});
    }
    memory_problem const p(records);
    std::vector<std::uint32_t> order;
    auto const problem = packed(p, order);
    auto const n = static_cast<std::uint32_t>(order.size());
    std::vector<detail::limit_entry> x;
    for (std::uint32_t i = 0; i < n; ++i) x.push_back({static_cast<std::int64_t>(rng() % 12), i, i, 0, i});
    std::sort(x.begin(), x.end());
    auto const frame = detail::root_frame<detail::limit_frame>(n, problem.sections);
    std::vector<detail::section_load> loads(problem.sections);
    std::vector<std::int64_t> lowest(problem.sections, -1);
    for (auto const& e : x)
      for (auto s = problem.hull[e.record].begin; s < problem.hull[e.record].end; ++s)
        if (problem.is_alive(e.record, s)) {
          loads[s].load += problem.size[e.record];
          if (lowest[s] < 0) lowest[s] = e.limit;
        }
    detail::section_range const where{static_cast<std::uint32_t>(rng() % problem.sections), problem.sections};
    auto const roof = 10 + static_cast<std::int64_t>(rng() % 40);
    detail::section_bound bound(problem);
    auto const s = bound.broken(frame, x.data(), loads.data(), where, roof);
    bool any = false;
    for (auto k = where.begin; k < where.end; ++k) any |= lowest[k] >= 0 && lowest[k] + loads[k].load > roof;
    REQUIRE((s != detail::search_frame::none) == any);
    if (any) REQUIRE((where.begin <= s && s < where.end && lowest[s] + loads[s].load > roof));
    broken += any, kept += !any;
  }
  CHECK(broken > 200);
  CHECK(kept > 200);
}

TEST_CASE("parts of a frame meet no other part, and are connected") {
  std::mt19937_64 rng(94);
  int several = 0;
  for (int round = 0; round < 1000; ++round) {
    auto const records = random_records(rng, {false, round % 2 == 1, false});
    memory_problem const p(records);
    std::vector<std::uint32_t> order;
    auto const problem = packed(p, order);
    auto const n = static_cast<std::uint32_t>(order.size());
    if (n == 0) continue;
    std::vector<detail::limit_entry> x;
    for (std::uint32_t i = 0; i < n; ++i) x.push_back({0, i, i, 0, i});
    std::vector<detail::section_load> loads(problem.sections);
    for (std::uint32_t i = 0; i < n; ++i)
      for (auto s = problem.hull[i].begin; s + 1 < problem.hull[i].end; ++s) ++loads[s].crossing;
    auto const whole = detail::root_frame<detail::limit_frame>(n, problem.sections);
    detail::frame_parts split(problem);
    auto const& parts = split(whole, x.data(), loads.data());
    std::vector<std::uint32_t> group(n), count(parts.size(), 0);
    std::iota(group.begin(), group.end(), 0u);
    for (std::uint32_t a = 0; a < n; ++a)  // the classes of those that meet in turn
      for (std::uint32_t b = 0; b < n; ++b)
        if (a != b && detail::meeting(problem, a)(b)) {
          auto const from = group[a], to = group[b];
          for (auto& g : group)
            if (g == from) g = to;
        }
    for (std::uint32_t a = 0; a < n; ++a) {
      ++count[split.of(whole, x[a], a)];
      for (std::uint32_t b = 0; b < n; ++b)
        REQUIRE((split.of(whole, x[a], a) == split.of(whole, x[b], b)) == (group[a] == group[b]));
    }
    for (std::size_t k = 0; k < parts.size(); ++k) REQUIRE(parts[k].count == count[k]);
    several += parts.size() > 1;
  }
  CHECK(several > 50);
}
