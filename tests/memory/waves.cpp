#include <neap/memory/streams/waves.hpp>

#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"

#include <neap/memory/bounds.hpp>
#include <neap/memory/check/check.hpp>
#include <neap/memory/exact/exact.hpp>
#include <neap/memory/greedy/greedy_by_size.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace neap;

TEST_CASE("an op's step comes after all that it waits for; a step has as many as it may, of one wave") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.copies = 2});
    flow_facts const facts(g, no_cost{}, {});
    auto const order = testing::random_order(g, seed);
    auto const at_once = static_cast<std::int64_t>(1 + seed % 4);
    auto const free = *waves(facts, order), cut = *waves(facts, order, at_once);
    table<op_id, std::uint32_t> position(order.size(), 0);
    for (std::uint32_t p = 0; p < order.size(); ++p) position[order[p]] = p;
    std::vector<std::int64_t> in_step(cut.steps, 0), in_wave(free.steps, 0);
    for (std::uint32_t p = 0; p < order.size(); ++p) {
      std::uint32_t earliest = 0;
      for (auto before : facts.after(order[p])) {
        CHECK(cut.step_of[position[before]] < cut.step_of[p]);
        earliest = std::max(earliest, free.step_of[position[before]] + 1);
      }
      CHECK(free.step_of[p] == earliest);  // uncut, each op is as early as it can be
      ++in_step[cut.step_of[p]], ++in_wave[free.step_of[p]];
    }
    std::int64_t steps = 0;
    for (auto k : in_wave) steps += (k + at_once - 1) / at_once;
    CHECK(cut.steps == steps);
    for (auto k : in_step) CHECK((k >= 1 && k <= at_once));
    for (std::uint32_t p = 0; p < order.size(); ++p)
      for (std::uint32_t q = 0; q < order.size(); ++q)
        if (cut.step_of[p] == cut.step_of[q]) CHECK(free.step_of[p] == free.step_of[q]);
  }
}

TEST_CASE("records: alive in every step from the maker to the last that touches, kept ones to the end") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.copies = 1});
    flow_facts const facts(g, no_cost{}, {.alignment = seed % 2 ? 64 : 1, .takeover = seed % 3 != 0});
    auto const order = testing::random_order(g, seed);
    auto const w = *waves(facts, order, static_cast<std::int64_t>(1 + seed % 3));
    auto const l = lifetimes(facts, order, w);
    std::size_t records = 0;
    for (auto s : id_range<storage_id>(facts.storage_count())) {
      std::int64_t first = -1, last = -1;
      for (std::uint32_t p = 0; p < order.size(); ++p) {
        auto const touched = facts.touches(order[p]);
        if (std::find(touched.begin(), touched.end(), s) == touched.end()) continue;
        auto const step = static_cast<std::int64_t>(w.step_of[p]);
        first = first < 0 ? step : std::min(first, step), last = std::max(last, step);
      }
      auto const given = facts.given_storages();
      if (std::find(given.begin(), given.end(), s) != given.end()) first = 0;
      if (facts.is_kept(s)) last = std::int64_t{w.steps} - 1;
      auto const r = l.record_of[s];
      if (facts.is_resident(s) || facts.bytes(s) == 0 || last < 0) continue;
      REQUIRE(r != lifetime_records::none);
      ++records;
      CHECK(l.records[r].lower == first);
      CHECK(l.records[r].upper == last + 1);
      CHECK(l.records[r].size == facts.bytes(s));
    }
    for (std::uint32_t p = 0; p < order.size(); ++p)
      if (auto const r = l.workspace_of[p]; r != lifetime_records::none) {
        ++records;
        CHECK(l.records[r].lower == w.step_of[p]);
        CHECK(l.records[r].upper == w.step_of[p] + 1);
        CHECK(l.records[r].size == facts.workspace(order[p]));
      } else {
        CHECK(facts.workspace(order[p]) == 0);
      }
    std::size_t living = 0;
    for (auto const& r : l.records) living += r.upper > r.lower;
    CHECK(living == records);
    auto const plan = greedy_by_size{}(l.records);
    CHECK_MESSAGE(verify(l.records, plan).ok(), verify(l.records, plan).message());
  }
}

TEST_CASE("with one op at once, the records and the arena are those of the order on a single stream") {
  int taken_over = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.copies = static_cast<std::uint32_t>(seed % 3)});
    auto const order = testing::random_order(g, seed);
    for (bool const takeover : {false, true}) {
      flow_facts const facts(g, no_cost{}, {.alignment = 64, .takeover = takeover});
      auto const single = simulator{}(facts, order);
      auto const l = lifetimes(facts, order, single);
      auto const one = plan_in_waves(facts, order, 1);
      REQUIRE(one);
      CHECK(one->steps.is_serial());
      CHECK(one->lifetimes.record_of == l.record_of);
      CHECK(one->lifetimes.workspace_of == l.workspace_of);
      CHECK(one->placed.arena_bytes == default_planner{}(l.records).arena_bytes);
      CHECK(plan_in_waves(facts, order, 1, greedy_by_size{})->placed.arena_bytes ==
            greedy_by_size{}(l.records).arena_bytes);
      CHECK(plan_in_waves(facts, order, 1, exact{})->placed.arena_bytes == exact{}(l.records).arena_bytes);
      for (auto s : id_range<storage_id>(facts.storage_count()))
        taken_over += single.takes_over[s] != nothing<storage_id>;
    }
  }
  CHECK(taken_over > 0);
}

TEST_CASE("any planner places waves; the default one is never worse than greedy by size") {
  struct nothing_fits {
    memory_plan operator()(memory_problem const&) const {
      memory_plan p;
      p.status = plan_status::feasible;
      p.offsets = {0};  // a wrong number of them
      return p;
    }
  };
  static_assert(memory_planner<nothing_fits>);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    auto const g = testing::random_graph(seed, {.copies = 1});
    flow_facts const facts(g, no_cost{}, {});
    auto const order = testing::random_order(g, seed);
    for (std::int64_t at_once : {std::int64_t{2}, std::int64_t{3}, INT64_MAX}) {
      auto const by_default = plan_in_waves(facts, order, at_once);
      REQUIRE(by_default);
      auto const& records = by_default->lifetimes.records;
      CHECK(verify(records, by_default->placed).ok());
      CHECK(by_default->placed.arena_bytes <=
            plan_in_waves(facts, order, at_once, greedy_by_size{})->placed.arena_bytes);
      auto const best = plan_in_waves(facts, order, at_once, exact{.budget = {.nodes = 2000}});
      CHECK(best->placed.arena_bytes <= by_default->placed.arena_bytes);
      CHECK(best->placed.arena_bytes >= load_lower_bound(memory_problem(records)).bytes);
      if (records.size() != 1) CHECK(!has_offsets(plan_in_waves(facts, order, at_once, nothing_fits{})->placed));
    }
  }
}

TEST_CASE("what is refused") {
  auto const g = testing::random_graph(3);
  flow_facts const facts(g, no_cost{}, {});
  CHECK(waves(facts, testing::random_order(g, 1), 0).message() == "waves: at least 1 op must run at once");
  CHECK(plan_in_waves(facts, testing::random_order(g, 1), 0).message() == "waves: at least 1 op must run at once");
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const swapping = testing::random_graph(seed, {.swaps = 2});
    flow_facts const of(swapping, no_cost{}, {});
    if (of.has_transfers())
      CHECK(waves(of, testing::random_order(swapping, 1)).message() ==
            "waves: the graph stores or loads, which is not done in waves");
  }
}
