// Programs as chains of blocks, solved and expanded: whatever the budget, the graph computes the same in an order in which
// it can run; and what the solver reckons with is what a simulator finds.
#include <neap/optimize/chain_solver.hpp>

#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/solve/remat_check.hpp>

#include "../support/check_edit.hpp"
#include "../support/deep_graph.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

namespace {

constexpr memory_options plain{.alignment = 1, .takeover = false};

plain_vector<bool> recomputable(op_graph const& g) {
  plain_vector<bool> may(g.op_count(), false);
  for (auto o : g.ops()) may[index(o)] = graph_traits<op_graph>::is_recomputable(g, o);
  return may;
}

struct some_cost {
  template <class G>
  double operator()(G const& g, op_id o) const {
    return flow::is_view(g, o) ? 0.0 : 1.0 + static_cast<double>(index(g.origin(o)) % 5);
  }
};

struct solved {
  graph const& g;
  schedule order;
  simulation result;
  plain_vector<bool> may;
  template <class C>
  solved(graph const& graph, C const& cost)
      : g(graph),
        order{topological_order(graph)},
        result(simulate(g, order, cost, plain)),
        may(recomputable(graph)) {}
  template <class S>
  chain_solver chain(S const& how, chain_solver_options const& o = {}) const {
    return {g, order, result, may, how, o};
  }
};

/// All points of the front, or some twenty of them, expanded and compared. How many there were.
std::size_t expand_all(solved const& s, chain_solver const& chain) {
  auto const expected = run_symbolically(s.g, s.order);
  REQUIRE_MESSAGE(expected.error.empty(), expected.error);
  auto const& front = chain.front();
  std::size_t expanded = 0;
  for (std::size_t k = 0; k < front.size(); k += 1 + front.size() / 20) {
    auto const e = chain.expand<graph>(front[k].budget);
    if (!e) continue;
    ++expanded;
    require_same(*e, expected);
    CHECK(simulate(e->graph, e->order, some_cost{}, plain).latency <= front[k].time + s.result.latency);
  }
  return expanded;
}

}  // namespace

TEST_CASE("random training steps: at every budget the same results") {
  std::size_t chains = 0, points = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    auto const g = seed % 2 ? opaque_graph(seed, 40) : random_model(seed, 30);
    solved const s(g, some_cost{});
    chain_solver_options o;
    o.slots = 100;
    o.levels = {3, 2};
    o.one_block = seed % 3 == 0;
    auto const chain = seed % 4 < 2 ? s.chain(use_gaps_for_blocks{.work = 500}, o) : s.chain(plain_blocks{}, o);
    if (chain.empty()) continue;
    ++chains;
    points += expand_all(s, chain);
  }
  CHECK(chains > 60);
  CHECK(points > 120);
}

TEST_CASE("deep models: the chain's time is the step's, and its memory nearly so") {
  for (auto const& o : {deep_options{.layers = 60}, deep_options{.layers = 60, .mixed = true},
                        deep_options{.layers = 24, .skip = 3}, deep_options{.layers = 12, .transformer = true}}) {
    auto const m = deep_graph(o);
    graph_editor edit(m.program);
    edit.keep(m.layer_inputs.back(), role::output);  // tells forward from backward
    graph const g(std::move(edit).finish());
    solved const s(g, given_latencies{});
    auto const chain = s.chain(use_gaps_for_blocks{.work = 2000});
    REQUIRE(!chain.empty());
    CHECK(chain.blocks().blocks.size() > 8);
    auto const& front = chain.front();
    REQUIRE(front.size() > 5);
    // With all the memory it wants nothing is computed again.
    auto const whole = chain.expand<graph>(front.back().budget);
    REQUIRE(whole);
    auto const at_most = simulate(whole->graph, whole->order, given_latencies{}, plain);
    CHECK(at_most.latency == doctest::Approx(s.result.latency));
    CHECK(at_most.peak_bytes <= s.result.peak_bytes);
    // With the least, much less memory is enough.
    auto const small = chain.expand<graph>(front.front().budget);
    REQUIRE(small);
    auto const at_least = simulate(small->graph, small->order, given_latencies{}, plain);
    CHECK(at_least.peak_bytes < s.result.peak_bytes / 2);
    for (std::size_t k = 0; k < front.size(); k += 1 + front.size() / 20) {
      auto const e = chain.expand<graph>(front[k].budget);
      REQUIRE(e);
      auto const r = simulate(e->graph, e->order, given_latencies{}, plain);
      auto const outside = s.result.latency - front.back().time;  // of what is in no block
      CHECK(outside >= -1e-12);
      CHECK(r.latency <= front[k].time + outside + 1e-9);  // what the model runs again and nobody reads is left out
      CHECK(r.latency >= 0.9 * front[k].time);
      auto const model = front[k].budget * chain.slot_bytes() + s.result.resident_bytes;
      CHECK(static_cast<double>(r.peak_bytes) < 1.25 * static_cast<double>(model));
    }
  }
}

TEST_CASE("a block's problem: what its answers are worth is what running them takes") {
  std::size_t blocks = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    auto const g = seed % 2 ? opaque_graph(seed, 40) : random_model(seed, 30);
    auto const all = make_all_graphs(g, {.kind = static_cast<cut_kind>(seed % 4)});
    std::vector<seconds_t> const seconds(g.op_count(), 1);
    for (std::uint32_t k = 0; k < all.blocks.blocks.size(); ++k) {
      auto const f = facts_of(g, all.blocks, k, span_of(seconds));
      std::vector<unsigned char> held(f.data.size(), 0);
      for (std::size_t d = 0; d < held.size(); ++d) held[d] = f.data[d].updated || (seed + d) % 7 == 0;
      auto const b = problem_of(f, held);
      auto const valid = check(b.problem);
      REQUIRE_MESSAGE(valid.ok(), valid.message());
      CHECK(b.op_of.size() == f.ops.size() + 1);
      CHECK(b.rest == f.forward_ops);
      for (auto const& a : options_of(b, use_gaps_for_blocks{.work = 300}, {2, 2})) {
        ++blocks;
        auto const right = verify(b.problem, {}, a);
        REQUIRE_MESSAGE(right.ok(), right.message());
        auto const price = price_of(b, a, 0, false);
        CHECK(price.option.forward_time + price.option.backward_time == doctest::Approx(a.time));
        CHECK(price.option.saved == a.saved_bytes + b.handed_on);
        CHECK(std::max(price.option.saved + price.option.forward_temporary,
                       price.option.saved + price.option.backward_temporary + b.handed_on) >= a.peak_bytes);
        // Whoever gives its input back saves less, and needs no less beside it.
        auto const giving = price_of(b, a, 100, true);
        CHECK(giving.option.saved <= price.option.saved);
        CHECK(giving.option.saved + giving.option.forward_temporary >=
              price.option.saved + price.option.forward_temporary - 100);
      }
      auto const all_saved = save_everything(b), input = save_input(b);
      CHECK(all_saved.time == doctest::Approx(time_once(b.problem)));
      CHECK(input.time >= all_saved.time);
      CHECK(input.saved_bytes <= all_saved.saved_bytes);
      CHECK(least_peak(b.problem) <= all_saved.peak_bytes);
      auto const pass = pass_of(b);
      CHECK(pass.time <= all_saved.time);
    }
  }
  CHECK(blocks > 300);
}

TEST_CASE("what has no chain of blocks has no answers") {
  auto const g = opaque_ops(1, role::output);
  CHECK(solved(g, some_cost{}).chain(plain_blocks{}).empty());
  graph const none(graph_editor{operator_table(standard_operators::facets)}.finish());
  auto const untold = deep_graph({.layers = 5});  // keeps gradients alone
  CHECK(solved(untold.program, some_cost{}).chain(plain_blocks{}).empty());
  CHECK(solved(none, some_cost{}).chain(plain_blocks{}).empty());
}
