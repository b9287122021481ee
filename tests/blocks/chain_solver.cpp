// Programs as chains of blocks, solved and expanded: whatever the budget, the graph computes the same in an order in which
// it can run; and what the solver reckons with is what a simulator finds.
#include <neap/blocks/chain_solver.hpp>

#include <neap/blocks/remat_check.hpp>
#include <neap/schedule/order.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/check_edit.hpp"
#include "../support/deep_graph.hpp"
#include "../support/linked.hpp"
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
    auto const e = chain.expand(front[k].budget);
    if (!e) continue;
    ++expanded;
    require_same(*e, expected);
    CHECK(simulate(e->graph, e->order, some_cost{}, plain).latency <= front[k].time + s.result.latency);
  }
  return expanded;
}

/// The lowest limits of a block's peak: the least peak, half a step above it, and the steps. Whether there were as many.
bool check_lowest_limits(block_problem const& b) {
  std::vector<bytes_t> peaks;
  auto const noted = [&](remat_problem const&, std::span<remat_limits const> limits) {
    for (auto const& l : limits)
      if (l.peak_bytes != remat_limits::none) peaks.push_back(l.peak_bytes);
    return std::vector<remat_answer>{};
  };
  (void)options_of(b, noted, {2, 4});
  std::sort(peaks.begin(), peaks.end());
  peaks.erase(std::unique(peaks.begin(), peaks.end()), peaks.end());
  if (peaks.size() < 5) return false;
  bytes_t const half = peaks[1] - peaks[0], step = peaks[2] - peaks[0];
  CHECK(peaks[0] == least_peak(b.problem));
  CHECK(half == step / 2);
  return true;
}

/// Plays answers with values away: what is read is there, what is loaded was stored and had gone, and the price is what was
/// saved and moved. How many there were.
std::size_t check_swaps(block_facts const& f, block_problem const& b) {
  using action = block_step::action;
  auto const& p = b.problem;
  constexpr bytes_t input = 100;
  std::vector<unsigned char> const movable(f.data.size(), 1);
  std::size_t swapped = 0;
  for (auto const& a : options_of(b, use_gaps_for_blocks{.work = 100}, {2, 1})) {
    auto const plain_price = price_of(b, steps_of(a), input, true);
    for (auto const& steps : swaps_of(f, b, a, movable, input, 3)) {
      ++swapped;
      enum { never, there, gone };
      std::vector<int> is(p.values.size(), never);
      std::vector<bool> stored(p.values.size(), false);
      bool input_stored = false, input_there = true, behind = false, pausing = false;
      bytes_t moved = 0, saved = 0;
      double seconds = 0;
      auto const saved_now = [&] {
        bytes_t sum = 0;
        for (std::size_t v = 0; v < is.size(); ++v)
          sum += is[v] == there && !p.values[v].outside ? p.values[v].bytes : 0;
        return sum;
      };
      for (auto const& s : steps) {
        bool const is_input = s.index == block_step::input;
        if (pausing && s.what != action::drop) saved = saved_now(), pausing = false;
        switch (s.what) {
          case action::compute:
            for (auto v : p.ops[s.index].inputs) CHECK(is[v] == there);
            for (auto v : p.ops[s.index].outputs) is[v] = there;
            if (b.reads_input[s.index]) CHECK(input_there);
            seconds += p.ops[s.index].time;
            if (s.index == b.rest) behind = pausing = true, input_there = !input_stored;
            break;
          case action::drop:
            if (is_input) break;
            CHECK(is[s.index] == there);
            is[s.index] = gone;
            break;
          case action::store:
            CHECK(!behind);
            CHECK((is_input || is[s.index] == there));
            if (is_input) input_stored = true;
            else stored[s.index] = true;
            moved += is_input ? input : p.values[s.index].bytes;
            break;
          case action::load:
            CHECK(behind);
            CHECK((is_input ? input_stored : stored[s.index] && is[s.index] == gone));
            if (is_input) input_there = true;
            else is[s.index] = there;
            moved += is_input ? input : p.values[s.index].bytes;
            break;
        }
      }
      CHECK(seconds == doctest::Approx(a.time));
      auto const price = price_of(b, steps, input, true);
      CHECK(price.moved == moved);
      CHECK(moved > 0);
      CHECK(price.option.forward_time + price.option.backward_time == doctest::Approx(a.time));
      CHECK(price.option.saved <= plain_price.option.saved);
      // Alone, it pays for its input; stored, that counts as given back.
      auto const reads = std::any_of(b.reads_input.begin() + b.rest, b.reads_input.end(), [](auto r) { return r; });
      if (!reads || input_stored) CHECK(price.option.saved == std::max<bytes_t>(0, saved + b.handed_on - input));
    }
  }
  return swapped;
}

}  // namespace

TEST_CASE("random training steps: at every budget the same results") {
  std::size_t chains = 0, points = 0, points_with_link = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    CAPTURE(seed);
    auto const g = seed % 2 ? opaque_graph(seed, 40) : random_model(seed, 30);
    solved const s(g, some_cost{});
    chain_solver_options o;
    o.slots = 100;
    o.levels = {3, 2};
    o.one_block = seed % 3 == 0;
    o.link = seed % 5 < 3 ? 1e6 : 0;
    auto chain = seed % 4 < 2 ? s.chain(use_gaps_for_blocks{.work = 500}, o) : s.chain(plain_blocks{}, o);
    if (chain.empty()) continue;
    ++chains;
    points += expand_all(s, chain);
    CHECK((o.link > 0 || !chain.can_swap()));
    if (!chain.can_swap()) continue;
    auto const before = chain.front();
    chain.swap_at(0.01);
    points_with_link += expand_all(s, chain);
    // No more memory is wanted for the same time, and without swaps all is as before.
    CHECK(chain.front().front().budget <= before.front().budget);
    chain.swap_nothing();
    CHECK(chain.front() == before);
  }
  CHECK(chains > 60);
  CHECK(points > 120);
  CHECK(points_with_link > 40);
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
    auto const whole = chain.expand(front.back().budget);
    REQUIRE(whole);
    auto const at_most = simulate(whole->graph, whole->order, given_latencies{}, plain);
    CHECK(at_most.latency == doctest::Approx(s.result.latency));
    CHECK(at_most.peak_bytes <= s.result.peak_bytes);
    // With the least, much less memory is enough.
    auto const small = chain.expand(front.front().budget);
    REQUIRE(small);
    auto const at_least = simulate(small->graph, small->order, given_latencies{}, plain);
    CHECK(at_least.peak_bytes < s.result.peak_bytes / 2);
    for (std::size_t k = 0; k < front.size(); k += 1 + front.size() / 20) {
      auto const e = chain.expand(front[k].budget);
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

TEST_CASE("blocks that pose the same problem are solved once, whatever their operators are called") {
  for (auto const& o : {deep_options{.layers = 100}, deep_options{.layers = 20, .transformer = true}}) {
    auto named = o;
    named.named = true;
    auto const plain_model = deep_graph(o), named_model = deep_graph(named);
    std::size_t asked = 0;
    auto const counted = [&](remat_problem const& p, std::span<remat_limits const> limits) {
      ++asked;
      return use_gaps_for_blocks{.work = 200}(p, limits);
    };
    std::vector<chain_front_point> front;
    for (auto const* m : {&plain_model, &named_model}) {
      graph_editor edit(m->program);
      edit.keep(m->layer_inputs.back(), role::output);
      graph const g(std::move(edit).finish());
      solved const s(g, given_latencies{});
      asked = 0;
      auto const chain = s.chain(counted);
      REQUIRE(chain.blocks().blocks.size() >= 40);
      CHECK(asked <= chain.solved_blocks());  // not those that have no limits between their plain answers
      CHECK(chain.solved_blocks() <= 8);
      if (m == &plain_model) front = chain.front();
      CHECK(chain.front() == front);
    }
  }
}

TEST_CASE("a layer is one block, though it adds to its end what went in: nothing is held beyond a neighbour") {
  auto const m = deep_graph({.layers = 100, .skip = 25});
  graph_editor edit(m.program);
  edit.keep(m.layer_inputs.back(), role::output);
  graph const g(std::move(edit).finish());
  solved const s(g, some_cost{});
  auto const chain = s.chain(use_gaps_for_blocks{.work = 2000});
  CHECK(chain.is_chain());
  CHECK(expand_all(s, chain) > 0);
}

TEST_CASE("with a link values leave while their blocks pause: the same results in less time, in the model's memory") {
  for (auto const& o : {deep_options{.layers = 60}, deep_options{.layers = 60, .mixed = true},
                        deep_options{.layers = 12, .transformer = true}}) {
    auto const m = deep_graph(o);
    graph_editor edit(m.program);
    edit.keep(m.layer_inputs.back(), role::output);
    graph const g(std::move(edit).finish());
    solved const s(g, given_latencies{});
    auto const expected = run_symbolically(s.g, s.order);
    bytes_t all = 0;
    for (auto x : g.storages()) all += g.bytes(x);
    double const link = 2 * static_cast<double>(all) / s.result.latency;  // twice all bytes in the time of a step
    auto chain = s.chain(use_gaps_for_blocks{.work = 2000}, {.link = link});
    REQUIRE(chain.can_swap());
    for (int part : {60, 40, 25}) {
      CAPTURE(part);
      auto const budget = chain.front().back().budget * part / 100;
      chain.swap_nothing();
      auto const stays = chain.expand(budget);
      REQUIRE(stays);
      chain.swap_at(0.2);
      auto const moves = chain.expand(budget);
      REQUIRE(moves);
      require_same(*moves, expected);
      flow_facts const facts(moves->graph, linked(link), plain);
      CHECK(facts.has_transfers());
      auto const r = simulator{}(facts, refine{}(facts, moves->order));
      auto const without = simulate(stays->graph, stays->order, given_latencies{}, plain);
      CHECK(r.latency < without.latency);
      CHECK(r.latency - s.result.latency < 0.5 * (without.latency - s.result.latency));
      auto const model = budget * chain.slot_bytes() + s.result.resident_bytes;
      CHECK(static_cast<double>(r.peak_bytes) < 1.25 * static_cast<double>(model));
    }
  }
}

TEST_CASE("a block's problem: what its answers are worth is what running them takes") {
  std::size_t blocks = 0, swapped = 0, limited = 0;
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
        auto const price = price_of(b, steps_of(a), 0, false);
        CHECK(price.option.forward_time + price.option.backward_time == doctest::Approx(a.time));
        CHECK(price.option.saved == a.saved_bytes + b.handed_on);
        CHECK(std::max(price.option.saved + price.option.forward_temporary,
                       price.option.saved + price.option.backward_temporary + b.handed_on) >= a.peak_bytes);
        // Whoever gives its input back saves less, and needs no less beside it.
        auto const giving = price_of(b, steps_of(a), 100, true);
        CHECK(giving.option.saved <= price.option.saved);
        CHECK(giving.option.saved + giving.option.forward_temporary >=
              price.option.saved + price.option.forward_temporary - 100);
      }
      swapped += check_swaps(f, b);
      limited += check_lowest_limits(b) ? 1 : 0;
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
  CHECK(swapped > 150);
  CHECK(limited > 20);
}

TEST_CASE("what has no chain of blocks has no answers") {
  auto const g = opaque_ops(1, role::output);
  CHECK(solved(g, some_cost{}).chain(plain_blocks{}).empty());
  graph const none(graph_editor{operator_table(standard_operators::facets)}.finish());
  auto const untold = deep_graph({.layers = 5});  // keeps gradients alone
  CHECK(solved(untold.program, some_cost{}).chain(plain_blocks{}).empty());
  CHECK(solved(none, some_cost{}).chain(plain_blocks{}).empty());
}
