// Searches that may run ops in parts.
#include <neap/optimize/fission_seeds.hpp>

#include <neap/import/graph_file.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/opaque_twin.hpp"
#include "../support/random_model.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

using namespace neap;
using namespace neap::testing;

namespace {

constexpr auto without = rematerialize{} | truncate(12);
constexpr auto with = chain(without, fission{} | truncate(4));
given_or<roofline> const cost{roofline::host(2)};
constexpr memory_options plainly{.alignment = 1, .takeover = false};

search_options limited(bytes_t memory) {
  search_options o;
  o.memory = plainly;
  o.memory_at_most = memory_limit(memory);
  o.iterations = 200;
  o.time = time_budget(std::chrono::seconds(600));
  return o;
}

std::size_t parts_in(graph const& g) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.record(o).part != nothing<part_id>;
  return n;
}

void add_swept(neap::detail::fission_seeds& seeds, candidate const& c) {
  auto sweep = std::make_shared<neap::detail::fission_sweep>(c.graph, c.order, c.result, fission_sweep_options{});
  auto const front = sweep->front();
  seeds.add(std::move(sweep), front);
}

}  // namespace

TEST_CASE("limits that no order and no recomputation meets are met in parts, in plans that pass the verifier") {
  int tried = 0, beyond = 0;
  stated_durations const stated({std::nullopt, true, roofline::host(2)});
  for (std::uint64_t seed = 0; seed < (sanitized ? 2 : 60); ++seed) {
    auto const g = opaque_twin(random_model(seed, 16));
    auto const order = given_order{}(g);
    candidate const c{g, order, simulate(g, order, cost, plainly)};
    auto const front = neap::detail::fission_sweep(g, order, c.result, {}).front();
    if (front.empty()) continue;
    auto const limit = front.back().peak + (c.result.peak_bytes - front.back().peak) / 6;
    CAPTURE(seed);
    auto const found = optimize(g, with, cost, limited(limit), order);
    auto const verdict = verify_plan(g, found.placed, stated);
    REQUIRE_MESSAGE(verdict.ok(), verdict.message());
    CHECK(found.lower_bound_bytes <= found.best.result.peak_bytes);
    CHECK_MESSAGE(found.fits, found.why_not());
    ++tried;
    auto const plain = optimize(g, without, cost, limited(limit), order);
    CHECK(parts_in(plain.best.graph) == 0);
    if (plain.lower_bound_bytes > limit) {
      CHECK(parts_in(found.best.graph) > 0);
      ++beyond;
    }
    auto const again = optimize(g, with, cost, limited(limit), order);  // as often as one likes
    CHECK(again.best.graph == found.best.graph);
    CHECK(again.best.order == found.best.order);
  }
  CHECK(tried > (sanitized ? 0 : 30));
  if (!sanitized) CHECK(beyond > 10);
}

TEST_CASE("with a latency limit the peak falls at least as far in parts as without") {
  int lower = 0;
  for (std::uint64_t seed = 0; seed < (sanitized ? 1 : 20); ++seed) {
    auto const g = opaque_twin(random_model(seed, 16));
    auto o = limited(0);
    o.memory_at_most = {};
    o.latency_at_most = latency_limit::of_original(1.5);
    auto const a = optimize(g, with, cost, o), b = optimize(g, without, cost, o);
    CAPTURE(seed);
    CHECK(a.fits);
    CHECK(a.best.result.latency <= 1.5 * a.original.latency * (1 + 1e-12));
    CHECK(a.best.result.peak_bytes <= a.original.peak_bytes);
    lower += a.best.result.peak_bytes < b.best.result.peak_bytes;
  }
  if (!sanitized) CHECK(lower > 5);
}

TEST_CASE("several stretches run in parts where one is not enough") {
  // Blocks that each widen what they read: no axis goes through all of them, for each turns its rows to columns.
  graph_editor edit{standard_operators::facets};
  constexpr int blocks = 5;
  auto x = edit.add_source(role::input, {dtype::f32, {64, 64}});
  for (int k = 0; k < blocks; ++k) {
    auto const w = edit.add_source(role::input, {dtype::f32, {64, 2048}});
    auto const wide = edit.add(op::gelu{}, {edit.add(op::matmul{}, {x, w})[0]})[0];
    auto const back = edit.add(op::matmul{.transpose_b = true}, {wide, w})[0];
    x = edit.add(op::softmax{}, {edit.add(op::matmul{.transpose_a = true}, {back, back})[0]})[0];
  }
  edit.keep(x, role::output);
  graph const g(std::move(edit).finish());
  auto const order = given_order{}(g);
  candidate const c{g, order, simulate(g, order, cost, plainly)};
  auto least = c.result.peak_bytes;
  for (auto const& f : neap::detail::fission_sweep(g, order, c.result, {}).front()) least = std::min(least, f.peak);
  auto const limit = c.result.resident_bytes + (c.result.peak_bytes - c.result.resident_bytes) / 4;
  REQUIRE(limit < least);  // one fission does not do it
  auto const found = optimize(g, with, cost, limited(limit), order);
  CHECK_MESSAGE(found.fits, found.why_not());
  CHECK(found.placed.graph.parts().size() > 1);
  std::size_t stretches = 0;
  for (auto const& s : found.steps) stretches += s.how.find("parts along axis") != s.how.npos;
  CHECK(stretches == blocks);
  auto const verdict = verify_plan(g, found.placed, stated_durations({std::nullopt, true, roofline::host(2)}));
  CHECK_MESSAGE(verdict.ok(), verdict.message());
}

TEST_CASE("seeds are ranked by what is asked, and refined until they could not be nearer") {
  auto const g = opaque_twin(random_model(5, 16));
  auto const order = given_order{}(g);
  candidate const c{g, order, simulate(g, order, cost, plainly)};
  objective goal;
  goal.limits_memory = true;
  goal.memory = c.result.peak_bytes * 3 / 4;
  neap::detail::fission_seeds seeds(goal);
  add_swept(seeds, c);
  auto const ranked = seeds.ranked(goal.memory);
  REQUIRE_FALSE(ranked.empty());
  auto const meets = [&](auto const& o) { return o.what.peak <= goal.memory; };
  CHECK(std::is_partitioned(ranked.begin(), ranked.end(), meets));
  for (std::size_t k = 1; k < ranked.size(); ++k) {
    if (meets(ranked[k])) CHECK(ranked[k - 1].what.latency <= ranked[k].what.latency);
    if (!meets(ranked[k - 1])) CHECK(ranked[k - 1].what.peak <= ranked[k].what.peak);
  }
  for (auto const& o : seeds.quicker(goal.memory, 1e9)) CHECK_FALSE(meets(o));
  int times = 0;
  while (seeds.refine(goal.memory)) REQUIRE(++times < 20);
  CHECK(times > 0);
  CHECK(seeds.ranked(goal.memory).size() >= ranked.size());
}

TEST_CASE("fissions are ranked by what is asked, and what was tried makes room for the next in line, to the last") {
  std::size_t ranked = 0, beyond_limit = 0;
  for (std::uint64_t seed = 0; seed < cases(40u) + 4; ++seed) {
    CAPTURE(seed);
    auto const g = opaque_twin(random_model(seed, 16));
    auto const order = given_order{}(g);
    candidate const c{g, order, simulate(g, order, cost, plainly)};
    objective const goal{.latency = 1.01 * c.result.latency, .limits_latency = true};
    neap::detail::fission_seeds seeds(goal);
    add_swept(seeds, c);
    bytes_t last[2] = {0, 0};
    for (auto all = seeds.ranked(0); !all.empty(); all = seeds.ranked(0)) {
      auto const best = all.front();
      bool const is_slow = best.what.latency > goal.latency;
      if (all.size() > 1 && is_slow)  // in turn, as long as there are both
        for (auto const& o : all) CHECK(o.what.latency > goal.latency);
      CHECK(best.what.peak >= last[is_slow]);  // each time the smallest of its kind
      last[is_slow] = best.what.peak;
      seeds.note_tried(best);
      auto const next = seeds.ranked(0);
      for (auto const& o : next) CHECK(o.number != best.number);
      ++ranked, beyond_limit += is_slow;
      REQUIRE(ranked < 100'000);
    }
  }
  CHECK(ranked > cases(50u));
  if (!sanitized) CHECK(beyond_limit > 0);
}

TEST_CASE("a plan under a limit of memory costs little where parts and swaps make one that does") {
  if (sanitized) return;  // a search of some length
  auto const file = io::read_graph(std::string(NEAP_SOURCE_DIR) + "/examples/graphs/gpt-d256-l4-b8-t128.json.gz",
                                   {.neap_graph = {.for_parts = true}});
  REQUIRE(file.ok());
  constexpr auto moves =
      chain(zip(rematerialize{} | truncate(24), neap::swap{50e9} | truncate(8)), fission{} | truncate(8));
  auto o = limited(0);
  o.memory_at_most = memory_limit::of_original(0.4);
  o.iterations = 12'000;  // shorter epochs take a part of them
  auto const found = optimize(file->program, moves, given_latencies{}, file->order, o);
  CHECK(found.fits);
  CHECK(found.best.result.latency <= 1.15 * found.original.latency);  // what seeds for the limit lead to takes 1.30
  CHECK(verify_plan(file->program, found.placed).ok());
  for (std::size_t k = 1; k < found.history.size(); ++k)  // nobody is told that a plan which fits is lost again
    CHECK((!found.history[k - 1].fits || found.history[k].fits));
}

TEST_CASE("a program of no bytes has nothing to be cut, and its search ends") {
  graph_editor e{operator_table(standard_operators::facets)};
  auto x = e.add_source(role::input, {dtype::f32, {0, 4}});
  for (int i = 0; i < 3; ++i) x = e.add(op::tanh{}, {x})[0];
  e.keep(x, role::output);
  graph const g(std::move(e).finish());
  for (double const ratio : {1.0, 1.5}) {
    search_options o;
    o.memory = plainly;
    o.latency_at_most = latency_limit::of_original(ratio);
    o.iterations = 200;
    o.time = time_budget(std::chrono::seconds(20));
    auto const found = optimize(g, with, o, [](graph const&, op_id) { return 1e-6; });
    CHECK(found.fits);
    CHECK(found.best.result.peak_bytes == 0);
    CHECK(found.seconds < 10);
  }
}
