#include <neap/optimize/search_policy.hpp>

#include <neap/optimize/optimize.hpp>
#include <neap/optimize/policy_text.hpp>

#include "../support/quality_row.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <string>

using namespace neap;

namespace {

optimized search(testing::quality_graph const& g, search_policy const& policy, double memory = 0.5,
                 std::size_t iterations = 400) {
  auto cost = given_or{roofline::h100_like()};
  search_options options;
  options.iterations = iterations;
  options.time = time_budget(std::chrono::hours(1000));
  options.starts = solver_seeds(all_solvers);
  if (memory > 0) options.memory_at_most = memory_limit::of_original(memory);
  else options.latency_at_most = latency_limit::of_original(1.1);
  return optimize(g.program, default_moves_with_fission(g.link), cost, g.order, options, policy);
}
testing::quality_graph graph_named(std::string const& name) {
  for (auto& g : testing::quality_graphs(NEAP_SOURCE_DIR))
    if (g.name == name) return g;
  throw std::runtime_error(name);
}

}  // namespace

TEST_CASE("a policy given as an option is the search's: the defaults change nothing, other numbers do") {
  auto const g = graph_named("nested3");
  auto const usual = search(g, {});
  CHECK(usual.trail == search(g, search_policy{}).trail);
  search_policy quick_to_stop;
  quick_to_stop.segments.share = 0;
  CHECK(usual.trail != search(g, quick_to_stop).trail);
}

TEST_CASE("a search with any stage off is right, and most stages judge candidates of their own") {
  std::size_t changes = 0, switches = 0;
  for (auto const* name : {"nested3", "random_model1"}) {
    auto const g = graph_named(name);
    for (double const memory : {0.5, 0.0}) {
      auto const usual = search(g, {}, memory, 2000);
      for (auto const& n : numbers_of({})) {
        if (!n.name.ends_with(".on")) continue;
        CAPTURE(name);
        CAPTURE(n.name);
        search_policy policy;
        set_number(policy, n.name, 0);
        auto const found = search(g, policy, memory, 2000);
        CHECK(verify_plan(g.program, found.placed, given_or{roofline::h100_like()}));
        changes += found.trail != usual.trail, ++switches;
      }
    }
  }
  CHECK(changes > switches / 4);
}

TEST_CASE("with all stages off the answer is one of the orders that a search starts from") {
  search_policy nothing;
  for (auto const& n : numbers_of(nothing))
    if (n.name.ends_with(".on")) set_number(nothing, n.name, 0);
  auto const found = search(graph_named("nested3"), nothing);
  CHECK(found.candidates < 10);
  CHECK_FALSE(found.fits);
  CHECK(found.steps.size() <= 1);
}

TEST_CASE("a share of 0 ends a search in which nothing else is left to try") {
  search_policy nothing;
  for (auto const& n : numbers_of(nothing))
    if (n.name.ends_with(".on")) set_number(nothing, n.name, 0);
  auto const g = graph_named("random_model1");
  for (auto const* stage : {"hidden_swaps", "offloads", "parts"}) {
    CAPTURE(stage);
    auto policy = nothing;
    set_number(policy, std::string(stage) + ".on", 1);
    set_number(policy, std::string(stage) + ".share", 0);
    auto const found = search(g, policy);  // in 1,000 hours
    CHECK(verify_plan(g.program, found.placed, given_or{roofline::h100_like()}));
  }
}

TEST_CASE("numbers that no search can run with are refused by name") {
  auto const g = graph_named("random_model1");
  CHECK(wrong_number({}).empty());
  for (auto const* name : {"epochs.growth", "tighter.step", "open_list.least", "parts.refinement", "solvers.fine"}) {
    search_policy policy;
    set_number(policy, name, 0);
    auto const group = std::string(name).substr(0, std::string(name).rfind('.'));
    CHECK(wrong_number(policy).find(group) == 0);
    CHECK_THROWS_WITH_AS(search(g, policy), doctest::Contains(wrong_number(policy).c_str()), error);
  }
}

TEST_CASE("any other number of 0 or 1 ends in a right answer") {
  auto const g = graph_named("random_model3");
  for (auto const& n : numbers_of({}))
    for (double const value : {0.0, 1.0}) {
      search_policy policy;
      set_number(policy, n.name, value);
      if (!wrong_number(policy).empty()) continue;
      CAPTURE(n.name);
      CAPTURE(value);
      for (double const memory : {0.6, 0.0}) {
        auto const found = search(g, policy, memory, 100);
        CHECK(verify_plan(g.program, found.placed, given_or{roofline::h100_like()}));
      }
    }
}
