#include <neap/memory/exact/probes.hpp>

#include "brute_force.hpp"

#include <neap/memory/bounds.hpp>
#include <neap/memory/exact/exact.hpp>
#include <neap/memory/greedy/greedy_by_size.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

namespace {

/// All that a walk asked and was told, up to `nodes` nodes in all.
struct course {
  std::vector<detail::probe> asked;
  std::vector<detail::probe_answer> told;
  std::int64_t bound = 0, left = 0;
};

template <class Answer>
course follow(memory_problem const& p, detail::capacity_walk walk, std::int64_t nodes, Answer&& answer) {
  course c;
  c.left = nodes;
  while (!walk.done() && c.left > 0) {
    auto asked = walk.next();
    asked.nodes = std::min(asked.nodes, c.left);
    c.asked.push_back(asked);
    c.told.push_back(answer(walk, asked, c.left));
    c.left -= c.told.back().nodes;
    auto const found = c.told.back().fits == detail::feasibility::yes;
    walk.learn(asked, c.told.back().fits, found ? detail::end_of(p, c.told.back().offsets) : 0);
  }
  c.bound = walk.bound();
  return c;
}

std::vector<usage_record> crowd(std::mt19937_64& rng, int count) {
  std::vector<usage_record> records;
  for (int i = 0; i < count; ++i) {
    auto const lower = static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(count / 2));
    records.push_back({.lower = lower,
                       .upper = lower + 1 + static_cast<std::int64_t>(rng() % 20),
                       .size = 1 + static_cast<std::int64_t>(rng() % 900)});
    if (rng() % 4 == 0) records.back().alignment = 8;
    if (rng() % 6 == 0 && records.back().upper > lower + 2) records.back().gaps.push_back({lower + 1, lower + 2, 0, 0});
  }
  return records;
}

}  // namespace

TEST_CASE("looking ahead changes nothing: questions, answers and nodes are those of one thread") {
  std::mt19937_64 rng(41);
  int found = 0, impossible = 0, spent = 0, closed = 0;
  for (int round = 0; round < rounds / 500; ++round) {
    std::vector<usage_record> records;
    if (round % 2) {
      records = crowd(rng, 24 + static_cast<int>(rng() % 16));
    } else {
      kind const k{round / 2 % 2 == 1, round / 4 % 2 == 1, false};
      for (int attempt = 0; attempt < 40; ++attempt) {
        records = random_records(rng, k);
        if (!board(records).fits(load_lower_bound(records).bytes)) break;
      }
    }
    memory_problem const p(records);
    detail::feasibility_search decide(p, {});
    std::int64_t total = 0;
    for (auto const& r : records) total += (r.size + r.alignment) / decide.unit() * decide.unit();
    detail::capacity_walk const walk(load_lower_bound(p).bytes, total, decide.unit(), 64);
    std::int64_t const nodes = 3000;
    auto const alone = follow(
        p, walk, nodes, [&](auto const&, detail::probe asked, std::int64_t) { return decide(asked, nullptr, {}); });
    for (auto const& t : alone.told)
      found += t.fits == detail::feasibility::yes, impossible += t.fits == detail::feasibility::no,
          spent += t.fits == detail::feasibility::unknown;
    closed += alone.left > 0;
    for (unsigned threads = 1; threads <= 4; ++threads) {
      worker_team team(threads);
      detail::probes_ahead ahead(decide, team);
      auto const together = follow(p, walk, nodes, [&](auto const& at, detail::probe asked, std::int64_t left) {
        return ahead(at, asked, left, {});
      });
      REQUIRE(together.asked == alone.asked);
      REQUIRE(together.told == alone.told);
      REQUIRE(together.bound == alone.bound);
    }
  }
  MESSAGE(found << " found, " << impossible << " impossible, " << spent << " spent, " << closed << " walks to the end");
  CHECK(found > rounds / 500);
  CHECK(impossible > rounds / 2000);
  CHECK(spent > rounds / 500);
}

TEST_CASE(
    "exact with one to four threads: the same plan to the offset, bound, status and nodes, equal to brute force") {
  std::mt19937_64 rng(42);
  int searched = 0;
  for (int round = 0; round < rounds / 100; ++round) {
    std::vector<usage_record> records;
    std::int64_t optimum = 0;
    kind const k{round % 2 == 1, round / 2 % 2 == 1, round / 4 % 2 == 1, round / 8 % 4 == 3};
    for (int attempt = 0; attempt < 60; ++attempt) {  // most that greedy planners leave open, if not all
      records = random_records(rng, k);
      if (default_planner{.max_placements = 0}(records).status == plan_status::feasible) break;
    }
    auto only_fixed = records;
    std::erase_if(only_fixed, [](usage_record const& r) { return r.offset == any_offset; });
    if (!board(only_fixed).fits(40)) continue;  // no plan at all
    optimum = load_lower_bound(records).bytes;
    while (!board(records).fits(optimum)) ++optimum;
    exact planner{.budget = {.nodes = round % 3 == 0 ? 20 : 1'000'000}};
    auto const one = planner(records);
    if (round % 3 != 0) {
      REQUIRE(one.status == plan_status::optimal);
      REQUIRE(one.arena_bytes == optimum);
    }
    REQUIRE(one.lower_bound_bytes <= optimum);
    searched += one.work > 0;
    exact decide = planner;
    decide.capacity = optimum - round % 2;
    auto const decided = decide(records);
    REQUIRE((!has_offsets(decided) || decided.arena_bytes <= decide.capacity));
    if (round % 3 != 0) REQUIRE(has_offsets(decided) == (round % 2 == 0));
    for (unsigned threads = 2; threads <= 4; ++threads) {
      planner.threads = decide.threads = threads;
      REQUIRE(planner(records) == one);
      REQUIRE(decide(records) == decided);
    }
  }
  CHECK(searched * 2 >= rounds / 100);
}

TEST_CASE("larger problems, budgets that end in mid-search: threads change nothing") {
  std::mt19937_64 rng(43);
  int cut = 0;
  for (int round = 0; round < (rounds > 5000 ? 3 : 1); ++round) {
    auto const records = crowd(rng, 120);
    exact planner{.budget = {.nodes = 90'000 + 1111 * round}};
    auto const one = planner(records);
    cut += one.status == plan_status::feasible && one.work >= planner.budget.nodes;
    for (unsigned threads : {2u, 3u}) {
      planner.threads = threads;
      CHECK(planner(records) == one);
    }
    planner.capacity = one.lower_bound_bytes, planner.budget.nodes = 20'000, planner.threads = 1;
    auto const decided = planner(records);
    planner.threads = 4;
    CHECK(planner(records) == decided);
  }
  CHECK(cut >= 1);
}

TEST_CASE("capacities behind one that fits are stopped; time ends all of them") {
  std::mt19937_64 rng(44);
  auto const records = crowd(rng, 120);
  memory_problem const p(records);
  detail::feasibility_search const decide(p, {});
  auto const bound = load_lower_bound(p).bytes;
  for (int round = 0; round < 20; ++round) {
    worker_team team(3);
    detail::probes_ahead ahead(decide, team);
    detail::capacity_walk const walk(bound, 2 * bound, 1, std::int64_t{1} << 40);
    auto const easy =
        ahead(walk, {4 * bound, 1'000'000}, std::int64_t{1} << 50, {});  // those ahead would take for ever
    CHECK(easy.fits == detail::feasibility::yes);
  }
  exact const planner{.budget = {.nodes = std::int64_t{1} << 60, .seconds = 0.02}, .threads = 3};
  auto const plan = planner(records);
  CHECK(plan.lower_bound_bytes <= plan.arena_bytes);
}

TEST_CASE("no question takes more nodes than a walk allows, the first one and those of later rounds either") {
  detail::capacity_walk walk(1000, 1100, 1, 64, 100);
  int repeated = 0;
  for (int k = 0; k < 60; ++k) {
    auto const asked = walk.next();
    CHECK(asked.nodes >= 64);
    CHECK(asked.nodes <= 100);
    repeated += asked.nodes > 64;
    walk.learn(asked, detail::feasibility::unknown, 0);
  }
  CHECK(repeated > 10);
  CHECK(!walk.done());
}
