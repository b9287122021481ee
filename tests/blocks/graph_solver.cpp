// Programs as graphs of blocks, solved and expanded: whatever the limit, the graph computes the same in an order in which it
// can run; and what the solver reckons with is what a simulator finds.
#include <neap/blocks/graph_solver.hpp>

#include <neap/blocks/chain_solver.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/check_edit.hpp"
#include "../support/nested_skips.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"
#include "../support/sanitized.hpp"

#include <numeric>

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

namespace {

constexpr memory_options plain{.alignment = 1, .takeover = false};

struct solved {
  graph const& g;
  schedule order;
  simulation result;
  plain_vector<bool> may;
  explicit solved(graph const& graph)
      : g(graph),
        order{topological_order(graph)},
        result(simulate(g, order, given_latencies{}, plain)),
        may(g.op_count(), false) {
    for (auto o : g.ops()) may[index(o)] = graph_traits<op_graph>::is_recomputable(g, o);
  }
  template <class S>
  graph_solver blocks(S const& how, graph_solver_options const& o = {}) const {
    return {g, order, result, may, how, o};
  }
};

}  // namespace

namespace {

struct expansions {
  std::size_t all = 0, smaller = 0, again = 0, refused = 0, moved = 0;
};

/// Solves a problem for several limits and expands each answer. Transfers take no time here.
void expand_each(solved const& s, graph_solver const& blocks, block_graph const& problem, std::uint64_t seed,
                 bool told_whole, expansions& sum) {
  auto const right = check(problem);
  REQUIRE_MESSAGE(right.ok(), right.message());
  auto const expected = run_symbolically(s.g, s.order);
  REQUIRE_MESSAGE(expected.error.empty(), expected.error);
  option_gaps search(problem, seed);
  auto const most = search.front().back().first;
  double last = 0;
  for (int part : {100, 80, 60, 45, 30}) {
    auto const limit = most * part / 100;
    auto const a = search.solve(limit, {.work = 600});
    if (!a) continue;
    CHECK(a->peak <= limit);
    if (problem.move_time.empty()) CHECK(a->time >= last);
    last = a->time;
    auto const e = blocks.expand(*a);
    sum.refused += !e;
    if (!e) continue;
    require_same(*e, expected);
    auto const r = simulate(e->graph, e->order, given_latencies{}, plain);
    ++sum.all;
    sum.smaller += r.peak_bytes < s.result.peak_bytes;
    sum.again += e->graph.op_count() > s.g.op_count();
    for (auto o : e->graph.ops()) sum.moved += e->graph.as<op::load>(o) != nullptr;
    CHECK(r.latency <= a->time + s.result.latency);
    if (told_whole) CHECK(r.peak_bytes <= a->peak);
  }
}
/// Without a link, and, where values may leave, with one.
void expand_some(graph const& g, std::uint64_t seed, bool told_whole, expansions& sum) {
  CAPTURE(seed);
  solved const s(g);
  graph_solver_options o;
  o.levels = {2, 2};
  o.max_blocks = seed % 2 ? 30 : 8;
  o.link = seed % 2 ? 1e9 : 0;
  auto const blocks = seed % 3 ? s.blocks(use_gaps_for_blocks{.work = 300}, o) : s.blocks(plain_blocks{}, o);
  if (blocks.empty()) return;
  auto const before = blocks.problem();
  expand_each(s, blocks, blocks.problem(), seed, told_whole, sum);
  CHECK(blocks.can_swap() == (o.link > 0));
  if (!blocks.can_swap()) return;
  expand_each(s, blocks, blocks.problem_at(0.01), seed, told_whole, sum);
  CHECK(blocks.problem() == before);
}

}  // namespace

TEST_CASE("random programs with nested skips: at every limit the same results, and no more memory than was reckoned") {
  expansions sum;
  for (std::uint64_t seed = 0; seed < testing::cases(150u); ++seed)
    expand_some(
        nested_skips(
            {.depth = 1 + seed % 4, .readers = seed % 3 ? std::size_t{0} : 3, .plain = seed % 5 == 0, .seed = seed}),
        seed, true, sum);
  MESSAGE(sum.all, " expanded, ", sum.smaller, " smaller, ", sum.again, " with recomputation, ", sum.moved, " loads");
  CHECK(sum.all > testing::cases(300));
  CHECK(sum.smaller > testing::cases(150));
  CHECK(sum.again > testing::cases(150));
  CHECK(sum.moved > testing::cases(150));
  CHECK(sum.refused == 0);
}

namespace {

/// Expands some answers of programs that any op may be in: few need what cannot run again.
template <class Program>
void check_expansions(Program&& program) {
  expansions sum;
  for (std::uint64_t seed = 0; seed < testing::cases(60u); ++seed) expand_some(program(seed), seed, false, sum);
  MESSAGE(sum.all, " expanded, ", sum.smaller, " smaller, ", sum.again, " with recomputation, ", sum.refused,
          " refused");
  CHECK(sum.all > testing::cases(40));
  CHECK(sum.refused * 8 < sum.all);
}

}  // namespace

TEST_CASE("random training steps of the DSL: the same results; an answer that needs what cannot run again is none") {
  check_expansions([](std::uint64_t seed) { return random_model(seed, 30); });
}

TEST_CASE("programs of opaque ops, views and updates in place") {
  check_expansions([](std::uint64_t seed) { return opaque_graph(seed, 40); });
}

TEST_CASE("where too many data go between blocks, those are one that one block makes and the same ones read") {
  expansions sum;
  std::size_t joined = 0;
  auto const check_program = [&](graph const& g, std::uint64_t seed, bool told_whole) {
    CAPTURE(seed);
    solved const s(g);
    graph_solver_options o;
    o.levels = {2, 2}, o.max_blocks = 8, o.link = seed % 2 ? 1e9 : 0;
    auto const whole = s.blocks(plain_blocks{}, o);
    if (whole.empty() || whole.problem().bytes.empty()) return;
    o.max_data = whole.problem().bytes.size() - 1, o.join_data = true;
    auto const blocks = s.blocks(plain_blocks{}, o);
    if (blocks.empty() || blocks.blocks() != whole.blocks()) return;  // nothing is alike
    ++joined;
    bytes_t const all = std::accumulate(whole.problem().bytes.begin(), whole.problem().bytes.end(), bytes_t{0});
    CHECK(std::accumulate(blocks.problem().bytes.begin(), blocks.problem().bytes.end(), bytes_t{0}) == all);
    CHECK(blocks.problem().bytes.size() < whole.problem().bytes.size());
    expand_each(s, blocks, blocks.problem(), seed, told_whole, sum);
    if (blocks.can_swap()) expand_each(s, blocks, blocks.problem_at(0.01), seed, told_whole, sum);
  };
  for (std::uint64_t seed = 0; seed < testing::cases(60u); ++seed) {
    check_program(nested_skips({.depth = 1 + seed % 4, .readers = 3, .told = seed % 2 == 0, .seed = seed}), seed, true);
    check_program(random_model(seed, 30), seed, false);
    check_program(opaque_graph(seed, 40), seed, false);
  }
  auto const g = nested_skips({.depth = 3, .seed = 1});
  solved const s(g);
  auto const blocks = s.blocks(plain_blocks{}, {.max_data = 1, .join_data = true});
  CHECK(blocks.empty());
  CHECK_MESSAGE(blocks.why_empty().starts_with("between its blocks go "), blocks.why_empty());
  CHECK(blocks.why_empty().ends_with(" data, however it is cut; at most 1 are taken"));
  MESSAGE(joined, " joined, ", sum.all, " expanded, ", sum.again, " with recomputation, ", sum.moved, " loads");
  CHECK(joined > testing::cases(20));
  CHECK(sum.again > testing::cases(10));
}

TEST_CASE("without a backward part what was made early is dropped and made again all the same") {
  std::size_t smaller = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(20u); ++seed) {
    CAPTURE(seed);
    auto const m = nested_skips({.depth = 3, .told = false, .plain = true, .seed = seed});
    solved const s(m);
    auto const blocks = s.blocks(plain_blocks{});
    REQUIRE(!blocks.empty());
    CHECK(!blocks.is_step());
    auto const expected = run_symbolically(m, s.order);
    option_gaps search(blocks.problem());
    for (int part : {90, 75, 60}) {
      auto const a = search.solve(s.result.peak_bytes * part / 100, {.work = 3000});
      if (!a) continue;
      auto const e = blocks.expand(*a);
      REQUIRE(e);
      require_same(*e, expected);
      auto const r = simulate(e->graph, e->order, given_latencies{}, plain);
      CHECK(r.peak_bytes <= a->peak);
      smaller += r.peak_bytes < s.result.peak_bytes;
    }
  }
  MESSAGE(smaller);
  CHECK(smaller >= testing::cases(30));
}

TEST_CASE("skips are dropped and made again where that is cheap: what a chain must hold is not there at the peak") {
  std::size_t better = 0, programs = 0;
  for (std::uint64_t seed = 1; seed <= (testing::sanitized ? 4 : 12); ++seed) {
    CAPTURE(seed);
    auto const g = nested_skips({.depth = 4, .layers = 3, .plain = true, .seed = seed});
    solved const s(g);
    chain_solver const chain(g, s.order, s.result, s.may, use_gaps_for_blocks{.work = 500});
    auto const blocks = s.blocks(use_gaps_for_blocks{.work = 500});
    REQUIRE(!blocks.empty());
    CHECK(!blocks.blocks().is_chain);
    bytes_t of_chain = s.result.peak_bytes;
    for (auto const& p : chain.front())
      if (auto const e = chain.expand(p.budget))
        of_chain = std::min(of_chain, simulate(e->graph, e->order, given_latencies{}, plain).peak_bytes);
    option_gaps search(blocks.problem());
    ++programs;
    for (int part : {95, 90, 85, 80}) {
      auto const a = search.solve(of_chain * part / 100, {.work = 4000});
      if (!a) continue;
      auto const e = blocks.expand(*a);
      REQUIRE(e);
      auto const r = simulate(e->graph, e->order, given_latencies{}, plain);
      if (r.peak_bytes < of_chain) {
        ++better;
        break;
      }
    }
  }
  MESSAGE(better, " of ", programs);
  CHECK(better * 4 > programs * 3);
}

TEST_CASE("with all the memory nothing runs again; equal blocks are solved once") {
  auto const g = nested_skips({.depth = 3, .layers = 4, .readers = 6, .plain = true, .seed = 4});
  solved const s(g);
  auto const blocks = s.blocks(plain_blocks{}, {.levels = {0, 0}});
  REQUIRE(!blocks.empty());
  CHECK(blocks.solved_blocks() <= blocks.blocks().blocks.size());
  option_gaps search(blocks.problem());
  auto const a = search.best(remat_limits::none);
  REQUIRE(a);
  auto const e = blocks.expand(*a);
  REQUIRE(e);
  CHECK(e->graph.op_count() == g.op_count());
  auto const r = simulate(e->graph, e->order, given_latencies{}, plain);
  CHECK(r.latency == doctest::Approx(s.result.latency));
}

TEST_CASE("what has no blocks has no answers") {
  auto const g = opaque_ops(1, role::output);
  CHECK(solved(g).blocks(plain_blocks{}).empty());
  graph const none(graph_editor{operator_table(standard_operators::facets)}.finish());
  CHECK(solved(none).blocks(plain_blocks{}).empty());
  // A gradient, and nothing that tells forward from backward: no blocks, and no error.
  auto const gradients = opaque_ops(2, role::gradient);
  CHECK(solved(gradients).blocks(plain_blocks{}).empty());
}
