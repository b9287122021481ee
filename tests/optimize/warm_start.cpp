// Plans of earlier searches to begin with: the answer is no worse than one that meets the limits.
#include <neap/optimize/warm_start.hpp>

#include <neap/import/plan_reader.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/mutate/no_moves.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/optimize/sweep.hpp>
#include <neap/report/plan_writer.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/engine_net.hpp"
#include "../support/message.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::message_of;
using neap::testing::random_model;

namespace {

auto const moves = default_moves_with_fission(1e9);

search_options with(double ratio, std::size_t iterations, std::uint64_t seed = 1) {
  search_options o;
  o.memory_at_most = memory_limit::of_original(ratio);
  o.time = time_budget(std::chrono::hours(10));
  o.iterations = iterations;
  o.seed = seed;
  return o;
}

/// The first model for which a plan under this limit exists and costs time.
struct planned_model {
  graph program;
  optimized found;
};
planned_model model_planned_at(double ratio) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto g = random_model(seed, 40);
    auto found = optimize(g, moves, with(ratio, 600));
    if (found.fits && found.placed.latency > found.original.latency) return {std::move(g), std::move(found)};
  }
  throw_error({"no random model has such a plan"});
}

}  // namespace

TEST_CASE("a looser limit is no slower than a tighter one whose plan it begins with, however short the search") {
  std::size_t tighter_was_better = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    auto const g = random_model(seed, 40);
    for (double const tight : {0.5, 0.7}) {
      CAPTURE(seed);
      CAPTURE(tight);
      auto const first = optimize(g, moves, with(tight, 600));
      for (std::size_t const iterations : {0u, 20u, 200u}) {
        CAPTURE(iterations);
        auto const alone = optimize(g, moves, with(tight + 0.02, iterations, 7));
        auto const found = optimize(g, moves, with(tight + 0.02, iterations, 7), warm_start{first});
        auto const right = verify_plan(g, found.placed);
        CHECK_MESSAGE(right.ok(), right.message());
        if (!first.fits) continue;
        CHECK(found.fits);
        CHECK(found.placed.arena_bytes <= found.memory_limit_bytes);
        CHECK(found.placed.latency <= first.placed.latency);
        tighter_was_better += !alone.fits || first.placed.latency < alone.placed.latency;
      }
    }
  }
  CHECK(tighter_was_better > 0);  // otherwise nothing was tried
}

TEST_CASE("a search without moves and candidates answers with its warm start, addresses and all") {
  auto const [g, first] = model_planned_at(0.6);
  auto const again = optimize(g, no_moves{}, with(0.6, 0), warm_start{first});
  CHECK(again.fits);
  REQUIRE(again.steps.size() == 1);
  CHECK(again.steps[0].how == "a plan of the warm start");
  CHECK(again.placed.graph == first.placed.graph);
  CHECK(static_cast<placed_steps const&>(again.placed).buffers == first.placed.buffers);
  CHECK(again.placed.steps == first.placed.steps);
  CHECK(again.lower_bound_bytes <= again.placed.peak_bytes);
}

TEST_CASE("an order of the program that is better than the warm start is the answer") {
  auto const [g, slow] = model_planned_at(0.6);
  auto const found = optimize(g, moves, with(1, 0), warm_start{slow});
  CHECK(found.fits);
  CHECK(found.placed.latency == found.original.latency);
}

TEST_CASE("a plan that does not meet the limit is explored from, and several may be given") {
  auto const [g, tight] = model_planned_at(0.55);
  auto const loose = optimize(g, moves, with(0.8, 300));
  auto const from_loose = optimize(g, moves, with(0.55, 600), warm_start{loose});
  CHECK(from_loose.placed.arena_bytes <= std::max(from_loose.memory_limit_bytes, loose.placed.arena_bytes));
  auto const found = optimize(g, moves, with(0.55, 50), warm_start{loose}, warm_start{tight});
  CHECK(found.fits);
  CHECK(found.placed.latency <= tight.placed.latency);
}

TEST_CASE("other alignment: a warm start is placed anew") {
  auto const g = random_model(4, 40);
  auto options = with(0.6, 600);
  options.memory.alignment = 1;
  auto const bytes = optimize(g, moves, options);
  options.memory.alignment = 256;
  options.iterations = 0;
  auto const found = optimize(g, moves, options, warm_start{bytes});
  auto const right = verify_plan(g, found.placed);
  CHECK_MESSAGE(right.ok(), right.message());
}

TEST_CASE("an external graph: the answer of optimize() is a warm start") {
  std::size_t repeats = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    engine::truth truth;
    auto const g = engine::random_net(seed, truth, {.least_ops = 10, .max_ops = 40});
    for (double const ratio : {0.9, 0.7, 0.5}) {
      auto const first = optimize(g, rematerialize{}, with(ratio, 60));
      if (!first.fits) continue;
      auto const found = optimize(g, no_moves{}, with(ratio + 0.05, 0), warm_start{first});
      CHECK(found.fits);
      CHECK(found.placed.latency <= first.placed.latency);
      CHECK(found.placed.arena_bytes <= found.memory_limit_bytes);
      engine::plan_check check{
          .g = g, .t = truth, .p = found.placed, .transfer_seconds = nullptr, .fault = {}, .content = {}, .filled = {}};
      CHECK(check.run() == "");
      for (auto const& s : found.placed.steps) repeats += s.copy > 0;
    }
  }
  CHECK(repeats > 0);
}

TEST_CASE("a plan from a file is a warm start as the plan itself is") {
  auto const [g, first] = model_planned_at(0.6);
  auto const file = io::parse_plan(plan_json(first.placed, {}), "first.plan");
  REQUIRE(file);
  auto const again = optimize(g, no_moves{}, with(0.65, 0), warm_start{file->planned});
  CHECK(again.fits);
  CHECK(again.placed.latency <= first.placed.latency);
  auto const right = verify_plan(g, again.placed);
  CHECK_MESSAGE(right.ok(), right.message());
}

TEST_CASE("plans of another graph, and plans that break a pin, are refused by number") {
  auto const [g, first] = model_planned_at(0.6);
  auto const of_other = optimize(random_model(100, 40), moves, with(0.8, 0));
  auto const and_other = [&, &p = g, &q = first] {
    optimize(p, moves, with(0.6, 0), warm_start{q}, warm_start{of_other});
  };
  CHECK(message_of(and_other) == "optimize: plan 1 of the warm start was made for another graph");
  auto options = with(0.6, 0);
  table<op_id, int> runs(first.placed.graph.origin_count(), 0);
  for (auto o : first.placed.graph.ops()) ++runs[first.placed.graph.origin(o)];
  for (auto o : g.ops())
    if (runs[o] > 1) options.pins = {{pin::run_once, o}};
  REQUIRE(!options.pins.empty());
  CHECK(message_of([&, &p = g, &q = first] { optimize(p, moves, options, warm_start{q}); }) ==
        "optimize: plan 0 of the warm start breaks a pin of this search");
  // What was found with these pins keeps them.
  options.memory_at_most = memory_limit::of_original(0.95);
  options.iterations = 300;
  auto const of_pinned = optimize(g, moves, options);
  REQUIRE(of_pinned.fits);
  options.iterations = 0;
  CHECK(optimize(g, moves, options, warm_start{of_pinned}).placed.latency <= of_pinned.placed.latency);
}

TEST_CASE("a sweep: later limits fit where earlier ones did, and are no slower") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    auto const g = random_model(seed, 40);
    std::vector<memory_limit> limits;
    for (double r = 0.4; r < 0.9; r += 0.1) limits.push_back(memory_limit::of_original(r));
    auto const answers = sweep(g, moves, limits, with(1, 60));
    REQUIRE(answers.size() == limits.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      CHECK(answers[i].memory_limit_bytes == limits[i].resolve(answers[i].original.peak_bytes));
      auto const right = verify_plan(g, answers[i].placed);
      CHECK_MESSAGE(right.ok(), right.message());
      if (i == 0 || !answers[i - 1].fits) continue;
      CHECK(answers[i].fits);
      CHECK(answers[i].placed.latency <= answers[i - 1].placed.latency);
    }
  }
  auto const g = random_model(1, 10);
  CHECK(message_of([&] {
          sweep(g, moves, {memory_limit::of_original(0.6), memory_limit::of_original(0.5)}, with(1, 0));
        }) == "sweep: limit 1 is lower than the one before it");
}
