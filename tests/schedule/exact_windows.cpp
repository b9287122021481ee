#include <neap/schedule/exact_windows.hpp>

#include <neap/schedule/memory_greedy.hpp>

#include "../support/exhaustive_order.hpp"
#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"

#include <doctest/doctest.h>

using namespace neap;

TEST_CASE("one window over a whole small graph is the best order there is") {
  int lowered = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    testing::random_graph_options ro;
    ro.max_ops = 12;
    auto const g = testing::random_graph(seed, ro);
    for (bool takeover : {false, true}) {
      flow_facts const facts(g, no_cost{}, {.alignment = 16, .takeover = takeover});
      if (facts.op_count() > 14) continue;
      simulator sim;
      auto const before = testing::random_order(g, seed);
      auto const after = exact_windows{.ops = 64, .near = 1}(facts, before);
      REQUIRE(check_order(facts, after));
      CHECK(sim.peak(facts, after) == sim.peak(facts, testing::exhaustive_order{}(facts)));
      lowered += sim.peak(facts, after) < sim.peak(facts, before);
    }
  }
  CHECK(lowered > 100);
}

TEST_CASE("windows never raise the peak, and lower that of many orders, greedy ones too") {
  int of_random = 0, of_greedy = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    testing::random_graph_options ro;
    ro.least_ops = 30, ro.max_ops = 120;
    ro.copies = seed % 3;
    ro.swaps = seed % 5 == 0;
    auto const g = testing::random_graph(seed, ro);
    flow_facts const facts(g, no_cost{}, {.alignment = 16, .takeover = seed % 2 == 0});
    simulator sim;
    for (bool greedy : {false, true}) {
      auto const before = greedy ? memory_greedy{}(facts) : testing::random_order(g, seed);
      for (std::size_t sets : {50, 3000}) {
        auto const after = exact_windows{.ops = 24, .sets = sets}(facts, before);
        REQUIRE(check_order(facts, after));
        CHECK(sim.peak(facts, after) <= sim.peak(facts, before));
        if (facts.has_transfers()) CHECK(after == before);
        (greedy ? of_greedy : of_random) += sim.peak(facts, after) < sim.peak(facts, before);
      }
    }
  }
  MESSAGE(of_random, " of random orders lowered, ", of_greedy, " of greedy ones");
  CHECK(of_random > 30);
  CHECK(of_greedy > 5);
}

TEST_CASE("orders with nothing to gain stay as they are") {
  auto const g = testing::random_graph(3);
  flow_facts const facts(g, no_cost{});
  auto const best = exact_windows{}(facts, memory_greedy{}(facts));
  CHECK(exact_windows{}(facts, best) == best);
  CHECK(exact_windows{.ops = 1}(facts, best) == best);
  CHECK(exact_windows{.rounds = 0}(facts, best) == best);
  CHECK(exact_windows{}(facts, schedule{}) == schedule{});
}
