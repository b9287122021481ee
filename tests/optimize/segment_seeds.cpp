#include <neap/optimize/segment_seeds.hpp>

#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/counted_search.hpp"
#include "../support/deep_graph.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/plain_checkpointing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

/// At limits from mild to the least that plain checkpointing reaches, found with few candidates and never slower.
void check_beside_plain(deep_options const& o) {
  auto const m = deep_graph(o);
  memory_options const memory{.alignment = 1, .takeover = false};
  auto const original = simulate(m.program, given_order{}(m.program), given_latencies{}, memory);
  auto const plain = plain_checkpointing(m, memory);
  bytes_t least = original.peak_bytes;
  for (auto const& p : plain) least = std::min(least, p.peak);
  REQUIRE(least < original.peak_bytes / 2);
  for (int part : {100, 60, 30, 10, 3, 0}) {
    auto const limit = least + (original.peak_bytes - least) * part / 100;
    CAPTURE(part);
    auto const found = optimize(m.program, rematerialize{} | truncate(8), limited(limit, 1200), given_latencies{});
    CHECK_MESSAGE(found.fits, found.why_not());
    auto const verdict = verify_plan(m.program, found.placed);
    CHECK_MESSAGE(verdict.ok(), verdict.message());
    for (auto const& p : plain)
      if (p.peak <= limit) CHECK(found.best.result.latency <= p.latency * (1 + 1e-9));
  }
}

/// The fewest ops that must run again in a chain of n ops whose results are all read on the way back, in reverse, with
/// room for m of them: Revolve's recursion, where what fits is kept.
std::vector<std::vector<int>> revolve(int n, int m) {
  std::vector<std::vector<int>> runs(static_cast<std::size_t>(n) + 1,
                                     std::vector<int>(static_cast<std::size_t>(m) + 1));
  for (int l = 1; l <= n; ++l)
    for (int s = 1; s <= m; ++s) {
      auto& best = runs[static_cast<std::size_t>(l)][static_cast<std::size_t>(s)];
      if (l <= s) continue;
      best = 1 << 29;
      for (int j = 1; j < l && s > 1; ++j)
        best = std::min(best, j + runs[static_cast<std::size_t>(l - j)][static_cast<std::size_t>(s - 1)] +
                                  runs[static_cast<std::size_t>(j)][static_cast<std::size_t>(s)]);
    }
  return runs;
}

}  // namespace

TEST_CASE("deep chains") { check_beside_plain({.layers = 200}); }
TEST_CASE("deep chains of mixed layers") { check_beside_plain({.layers = 150, .mixed = true}); }
TEST_CASE("deep chains with skips") { check_beside_plain({.layers = 150, .skip = 3}); }
TEST_CASE("deep chains with skips over many layers") { check_beside_plain({.layers = 100, .long_skip = 6}); }
TEST_CASE("deep transformers") { check_beside_plain({.layers = 24, .transformer = true}); }

TEST_CASE("a chain of 2,000 layers is met at once") {
  auto const m = deep_graph({.layers = 2000});
  auto const original = simulate(m.program, given_order{}(m.program), given_latencies{});
  auto const found =
      optimize(m.program, rematerialize{} | truncate(8), limited(original.peak_bytes / 20, 60), given_latencies{});
  CHECK_MESSAGE(found.fits, found.why_not());
  CHECK(found.best.result.latency < 1.33 * original.latency);
}

TEST_CASE("uniform chains: within 2 % of the best schedule") {
  // n ops of one second and one unit each, a gradient for each: its reader needs it and the gradient after it.
  int const n = 120;
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const type = tensor_layout::dense({dtype::f32, {256}});
  auto const op = [&](std::vector<value_id> const& in) {
    op::opaque x;
    x.seconds = 1;
    output_rule const out[] = {{type, alias_kind::fresh, -1, -1}};
    return edit.output(edit.add_opaque("op", x, in, out));
  };
  std::vector<value_id> chain{edit.add_source_at(role::input, type, "x")};
  for (int i = 0; i < n; ++i) chain.push_back(op({chain.back()}));
  auto gradient = op({chain.back()});
  for (int i = n; i >= 1; --i) gradient = op({gradient, chain[static_cast<std::size_t>(i)]});
  edit.keep(gradient, role::gradient);
  graph const g(std::move(edit).finish());
  auto const fewest = revolve(n, n);
  for (int room : {100, 70, 50, 35, 25, 20, 17}) {
    // Beside `room` results: the input, and the gradients on both sides of an op.
    auto const found = optimize(g, rematerialize{} | truncate(8), limited((room + 3) * 1024, 1500), given_latencies{});
    CAPTURE(room);
    CHECK_MESSAGE(found.fits, found.why_not());
    double const best = 2 * n + 1 + fewest[static_cast<std::size_t>(n)][static_cast<std::size_t>(room)];
    CHECK(found.best.result.latency <= 1.02 * best);
  }
}

TEST_CASE("a step over several batches: each is recomputed as one alone is") {
  for (bool const transformer : {false, true}) {
    deep_options o{.layers = transformer ? 8u : 60u, .transformer = transformer};
    auto const one = deep_graph(o);
    o.batches = 4;
    auto const four = deep_graph(o);
    auto const peak_of = [](deep_model const& m) {
      return simulate(m.program, given_order{}(m.program), given_latencies{}, {.alignment = 1, .takeover = false})
          .peak_bytes;
    };
    for (int part : {75, 50, 35}) {
      CAPTURE(transformer);
      CAPTURE(part);
      auto const found = [&](deep_model const& m, bytes_t limit) {
        return optimize(m.program, rematerialize{} | truncate(8), limited(limit, 900), given_latencies{});
      };
      auto const alone = found(one, peak_of(one) * part / 100);
      REQUIRE_MESSAGE(alone.fits, alone.why_not());
      // More is kept at the last batch: the gradients of those before.
      auto const together = found(four, peak_of(one) * part / 100 + peak_of(four) - peak_of(one));
      CHECK_MESSAGE(together.fits, together.why_not());
      CHECK(together.best.result.latency <= 4 * 1.02 * alone.best.result.latency);
    }
  }
}

TEST_CASE("with a latency limit the peak falls as far as it allows") {
  auto const m = deep_graph({.layers = 200});
  memory_options const memory{.alignment = 1, .takeover = false};
  auto const original = simulate(m.program, given_order{}(m.program), given_latencies{}, memory);
  search_options o = limited(0, 800);
  o.memory_at_most = {};
  bytes_t before = original.peak_bytes;
  for (double limit : {1.02, 1.05, 1.1, 1.2, 1.3}) {
    o.latency_at_most = latency_limit::of_original(limit);
    auto const found = optimize(m.program, rematerialize{} | truncate(8), o, given_latencies{});
    CHECK(found.fits);
    CHECK(found.best.result.latency <= original.latency * limit * (1 + 1e-12));
    CHECK(found.best.result.peak_bytes < before);
    before = found.best.result.peak_bytes;
    for (auto const& p : plain_checkpointing(m, memory))
      if (p.latency <= original.latency * limit) CHECK(found.best.result.peak_bytes <= p.peak);
  }
}

TEST_CASE("a poor order does not take the budget of a better one") {
  // All gradients of weights run last, so that activations and gradients wait for them; in the greedy order they do not.
  auto const m = deep_graph({.layers = 80, .mixed = true});
  auto const& g = m.program;
  schedule late = given_order{}(g);
  std::stable_partition(late.order.begin(), late.order.end(), [&](op_id o) {
    auto const* x = g.as<op::opaque>(o);
    return !x || g.text(x->target) != "linear.weight_gradient";
  });
  search_options o = limited(0, 300);
  o.memory_at_most = {};
  bytes_t before = INT64_MAX / 2;
  for (double limit : {1.05, 1.1, 1.2, 1.35, 1.5}) {
    CAPTURE(limit);
    o.latency_at_most = latency_limit::of_original(limit);
    auto const found = optimize(g, rematerialize{} | truncate(8), o, late, given_latencies{});
    CHECK(found.fits);
    CHECK(found.best.result.peak_bytes <= before + before / 50);
    before = std::min(before, found.best.result.peak_bytes);
  }
}

TEST_CASE("an answer whose addresses and time are within the limits fits, and no other") {
  int fit = 0, others = 0, fragmented = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    auto const g = opaque_graph(seed, 30);
    for (double part : {0.95, 0.85, 0.75, 0.6}) {
      search_options o;
      o.memory_at_most = memory_limit::of_original(part);
      o.iterations = 60 + 40 * (seed % 6);
      o.time = time_budget(std::chrono::seconds(600));
      auto const found = optimize(g, rematerialize{} | truncate(8), o, given_latencies{});
      bool const within = found.placed.arena_bytes <= found.memory_limit_bytes;
      CAPTURE(seed);
      CAPTURE(part);
      CHECK(found.fits == within);
      (within ? fit : others) += 1;
      auto const peak = found.best.result.peak_bytes;
      fragmented += found.placed.arena_bytes > peak + peak / 200;
    }
  }
  int const enough = 50;
  CHECK(fit > enough);
  CHECK(others > enough);
  CHECK(fragmented * 200 <= fit + others);
}

TEST_CASE("the same answer for the same iterations") {
  auto const m = deep_graph({.layers = 60, .mixed = true, .skip = 2});
  auto const original = simulate(m.program, given_order{}(m.program), given_latencies{});
  auto const run = [&] {
    return optimize(m.program, rematerialize{} | truncate(8), limited(original.peak_bytes / 3, 300), given_latencies{});
  };
  auto const a = run(), b = run();
  CHECK(a.best.graph == b.best.graph);
  CHECK(a.best.order == b.best.order);
  CHECK(a.steps == b.steps);
}
