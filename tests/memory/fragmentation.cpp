#include <neap/memory/check/fragmentation.hpp>

#include "../support/random_graph.hpp"
#include "brute_force.hpp"

#include <neap/memory/check/check.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/memory/planner.hpp>
#include <neap/schedule/memory_greedy.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

TEST_CASE("each point equals a count of the bytes, moment by moment") {
  std::mt19937_64 rng(31);
  for (int round = 0; round < 2000; ++round) {
    auto const records = random_records(rng, {round % 2 == 1, round % 3 == 1, false, true});
    memory_problem const problem(records);
    auto const plan = default_planner{}(problem);
    REQUIRE(has_offsets(plan));
    auto const report = fragmentation(problem, plan);
    std::int64_t most = 0, worst = 0;
    double used = 0, reached = 0;
    for (std::int64_t t = 0; t < board::moments; ++t) {
      std::uint64_t bytes = 0;
      for (std::size_t i = 0; i < records.size(); ++i)
        if (records[i].lower <= t && t < records[i].upper) bytes |= board::stretch(records[i], t) << plan.offsets[i];
      fragmentation_point now;
      for (auto const& x : report.points)
        if (x.moment <= t) now = x;
      CHECK(now.load == std::popcount(bytes));
      CHECK(now.highest == std::bit_width(bytes));
      most = std::max(most, now.load), worst = std::max(worst, now.free());
      used += std::popcount(bytes), reached += static_cast<double>(std::bit_width(bytes));
    }
    CHECK(report.largest_load == most);
    CHECK(report.worst_free == worst);
    CHECK(report.lost_bytes() == plan.arena_bytes - most);
    CHECK(report.used_share == doctest::Approx(used / reached));
    for (auto const& x : report.points) {
      if (x.moment == report.worst_moment) CHECK(x.free() == worst);
      if (x.moment == report.load_moment) CHECK(x.load == most);
    }
  }
}

TEST_CASE("nothing, and no plan") {
  CHECK(fragmentation(std::vector<usage_record>{}, memory_plan{}).points.empty());
  CHECK(fragmentation(std::vector<usage_record>{}, memory_plan{}).ratio() == 1.0);
  memory_plan none;
  none.status = plan_status::infeasible;
  CHECK(fragmentation(std::vector<usage_record>{{.upper = 1, .size = 1}}, none).points.empty());
}

TEST_CASE("the rows of the CSV") {
  std::vector<usage_record> const records{{.upper = 2, .size = 3}, {.lower = 1, .upper = 4, .size = 5}};
  memory_plan plan;
  plan.offsets = {0, 3};
  plan.arena_bytes = 8;
  CHECK(fragmentation_csv(fragmentation(records, plan)) ==
        "moment,load_bytes,highest_byte,free_bytes\n0,3,3,0\n1,8,8,0\n2,5,8,3\n4,0,0,0\n");
}

TEST_CASE("of a whole plan: the load is the simulated peak above the residents, the records are right") {
  auto const unit = [](auto const&, op_id) { return 1.0; };
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    memory_options const options{.alignment = seed % 2 ? 64 : 1, .takeover = seed % 3 != 0};
    auto const g = testing::random_graph(seed, {.copies = 1, .swaps = static_cast<std::uint32_t>(seed % 3)});
    auto const order = memory_greedy{}(g, options);
    auto const p = make_plan(candidate{g, order, simulate(g, order, unit, options)}, g, options);
    auto const r = records_of(p);
    CHECK_MESSAGE(verify(r.records, r.placed).ok(), verify(r.records, r.placed).message());
    auto const report = fragmentation(p);
    CHECK(report.largest_load == p.peak_bytes - p.resident_bytes);
    CHECK(report.arena_bytes == p.arena_bytes - p.resident_bytes);
    std::int64_t highest = 0;
    for (auto const& x : report.points) highest = std::max(highest, x.highest);
    CHECK(highest == report.arena_bytes);
  }
}
