// No move, seed or solver breaks a pin.
#include <neap/optimize/pin_guard.hpp>

#include <neap/blocks/solver_seeds.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/filter.hpp>
#include <neap/mutate/magis_moves.hpp>
#include <neap/mutate/no_moves.hpp>
#include <neap/mutate/offload.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/mutate/rules_in_parts.hpp>
#include <neap/mutate/sample.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/deep_graph.hpp"
#include "../support/message.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/pin_counts.hpp"
#include "../support/random_algebra.hpp"
#include "../support/random_fission.hpp"
#include "../support/random_model.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

graph some_graph(std::uint64_t seed) {
  if (seed % 4 == 0) return random_algebra(seed).make(24);
  if (seed % 4 == 1) return opaque_graph(seed, 24);
  if (seed % 8 == 3) return deep_graph({.layers = 6, .transformer = seed % 16 == 3}).program;
  return random_model(seed, 24);
}

search_options searching(double ratio, std::size_t iterations, bool solvers) {
  search_options o;
  o.iterations = iterations;
  o.set(memory_limit::of_original(ratio));
  auto few = all_solvers;
  few.work = 20'000;
  if (solvers) o.set(solver_seeds(few));
  return o;
}

/// All moves there are.
inline constexpr auto every_move =
    zip(zip(swap{}, rematerialize{}) | truncate(24), fission_moves | truncate(24), taso_rules{} | truncate(12),
        in_parts(taso_rules{}) | truncate(12), undo_moves | truncate(12), reorder{} | truncate(4));

std::size_t runs_of(op_graph const& g, op_id origin) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.origin(o) == origin;
  return n;
}

/// Layers whose values wait for a backward part.
graph ladder() {
  auto const m = deep_graph({.layers = 12});
  graph_editor edit(m.program);
  edit.keep(m.layer_inputs.back(), role::output);  // tells forward from backward
  return graph(std::move(edit).finish());
}

}  // namespace

TEST_CASE("no move, seed or solver breaks a pin, on random graphs with random pins at small limits") {
  pin_counts without;  // what the same searches do where nothing is pinned
  for (std::uint64_t seed = 0; seed < (sanitized ? 4u : 300u); ++seed) {
    CAPTURE(seed);
    auto const plain = some_graph(seed);
    auto const g = randomly_pinned(plain, seed);
    auto const options = searching(seed % 3 ? 0.5 : 0.3, 150, seed % 2 == 0);
    auto const found = seed % 5 == 4 ? optimize(g, no_moves{}, options) : optimize(g, every_move, options);
    auto const verdict = verify_plan(g, found.placed);
    CHECK_MESSAGE(verdict.ok(), verdict.message());
    CHECK(broken_pins(g, found.placed.graph).first == "");
    auto const free =
        seed % 5 == 4 ? optimize(plain, no_moves{}, options).placed : optimize(plain, every_move, options).placed;
    auto const n = broken_pins(g, free.graph);
    without.again += n.again, without.in_parts += n.in_parts, without.out += n.out, without.missing += n.missing;
  }
  // So the pins did hold something back.
  MESSAGE("without pins: ", without.again, " run again, ", without.in_parts, " in parts, ", without.out, " out, ",
          without.missing, " missing");
  if (!sanitized) CHECK(std::min({without.again, without.in_parts, without.out, without.missing}) > 5);
}

TEST_CASE("mutations one after another break no pin, and copies and parts have the pins of their ops") {
  std::size_t applied = 0;
  for (std::uint64_t seed = 0; seed < (sanitized ? 2u : 120u); ++seed) {
    CAPTURE(seed);
    auto const g = randomly_pinned(some_graph(seed), seed, 6);
    random_stream draw(seed, 7);
    candidate c{g, given_order{}(g), {}};
    neap::detail::pin_guard const guard(g);
    for (int step = 0; step < 12; ++step) {
      c.result = simulate(c.graph, c.order, given_or<roofline>{roofline::host(2)});
      auto stream = every_move(c);
      std::vector<mutation_of<stream_of<decltype(every_move)>>> all;
      while (auto m = stream.next()) all.push_back(*m);
      if (all.empty()) break;
      auto e = apply_mutation(all[draw.below(static_cast<std::uint32_t>(all.size()))], c);
      if (!e) continue;
      ++applied;
      CHECK(broken_pins(g, e->graph).first == "");
      CHECK(guard.holds(e->graph));
      c.graph = std::move(e->graph), c.order = std::move(e->order);
    }
    c.result = simulate(c.graph, c.order, given_or<roofline>{roofline::host(2)});
    if (auto e = apply_mutation(offload{c.result.peak_bytes / 2}, c)) CHECK(broken_pins(g, e->graph).first == "");
  }
  if (!sanitized) CHECK(applied > 200);
}

TEST_CASE("each pin alone, where a search would break it") {
  auto const g = ladder();
  auto const options = searching(0.45, 400, true);
  auto const moves = chain(rematerialize{} | truncate(24), swap{} | truncate(8));
  auto const free = optimize(g, moves, options);
  op_id again = nothing<op_id>;  // an op that the search runs again
  for (auto o : g.ops())
    if (runs_of(free.placed.graph, o) > 1 && !flow::is_view(g, o)) again = o;
  REQUIRE(again != nothing<op_id>);
  for (auto p : {pin::keep, pin::run_once}) {
    auto const found = optimize(g, moves, options, pin_rules{{p, again}});
    CHECK(runs_of(found.placed.graph, again) == 1);
    CHECK(verify_plan(g, found.placed).ok());
    auto as_pinned = found.placed;
    auto const with_pins = pinned(g, {{p, again}});
    as_pinned.original = with_pins.digest();
    CHECK(verify_plan(with_pins, as_pinned).message() == "");
    auto unpinned = free.placed;
    unpinned.original = with_pins.digest();
    CHECK(verify_plan(with_pins, unpinned).has(violation_kind::broken_pin));
  }
}

TEST_CASE("an op with effects that is pinned run_again runs again") {
  auto const make = [](bool pinned) {
    graph_editor edit{operator_table(standard_operators::facets)};
    tensor_type const small{dtype::f32, {1 << 14}}, large{dtype::f32, {1 << 16}};
    auto const x = edit.add_source(role::input, small);
    output_rule const fresh{tensor_layout::dense(small), alias_kind::fresh, -1, -1};
    output_rule const grown{tensor_layout::dense(large), alias_kind::fresh, -1, -1};
    op::opaque impure;
    impure.pure = false;
    auto const a = edit.output(edit.add_opaque("effect", impure, {&x, 1}, {&fresh, 1}, "a"));
    auto v = a;
    for (int i = 0; i < 6; ++i)
      v = edit.output(edit.add_opaque("grow", op::opaque{}, {&v, 1}, {i < 5 ? &grown : &fresh, 1}));
    std::array<value_id, 2> const both{v, a};
    edit.keep(edit.output(edit.add_opaque("join", op::opaque{}, both, {&fresh, 1})), role::output);
    if (pinned) edit.add_pins(a, pin::run_again);
    return graph(std::move(edit).finish());
  };
  for (bool const pinned : {false, true}) {
    auto const g = make(pinned);
    auto const found = optimize(g, rematerialize{}, memory_options{.takeover = false}, memory_limit::of_original(0.93));
    CHECK((runs_of(found.placed.graph, id_at<op_id>(0)) > 1) == pinned);
    CHECK(verify_plan(g, found.placed).message() == "");
  }
}

TEST_CASE("where nothing fits, the answer names what may not run again, and why") {
  auto const plain = ladder();
  auto const limit = memory_limit::of_original(0.1);
  auto const why = [&](graph const& g) {
    return optimize(g, rematerialize{} | truncate(8), limit, time_budget(std::chrono::seconds(2))).why_not();
  };
  CHECK(why(plain).find("may not run again") == std::string::npos);
  auto const all = why(pinned(plain, {{pin::run_once, "*"}}));
  CHECK(all.find(" may not run again: run_once (") != std::string::npos);
  CHECK(all.find('\n') == std::string::npos);
  CHECK(why(pinned(plain, {{pin::keep, "*"}})).find(" may not run again: keep (") != std::string::npos);
}

namespace {

/// A user's mutation that runs an op again whatever its pins say, by an edit of its own.
struct run_anyway {
  op_id what = nothing<op_id>;
  [[maybe_unused]] friend bool operator==(run_anyway const&, run_anyway const&) = default;
  std::optional<edited> apply(candidate const& c) const {
    auto const v = c.graph.output(what);
    auto const readers = c.graph.uses(v);
    graph_editor edit{c.graph};
    auto const copy = edit.clone(what);
    op_id const last = readers.back().op;
    edit.replace_uses(v, edit.output(copy), {&last, 1});
    schedule order;
    for (auto o : c.order.order) {
      if (o == last) order.order.push_back(copy);
      order.order.push_back(o);
    }
    return edited{op_graph(std::move(edit).finish()), std::move(order)};
  }
  std::string describe(candidate const&) const { return "run it anyway"; }
};
struct runs_anyway {
  op_id what = nothing<op_id>;
  struct stream {
    std::optional<run_anyway> left;
    std::optional<run_anyway> next() { return std::exchange(left, std::nullopt); }
  };
  stream operator()(candidate const& c) const {
    if (runs_of(c.graph, what) > 1 || c.graph.uses(c.graph.output(what)).size() < 2) return {};
    return {run_anyway{what}};
  }
};

/// A start of a user's own that breaks a pin.
struct breaking_starts : search_starts {
  op_id what;
  explicit breaking_starts(op_id o) : what(o) {}
  std::unique_ptr<starting_points> begin(start_from const& from) const override {
    struct points : starting_points {
      start_from from;
      op_id what;
      points(start_from const& f, op_id o) : from(f), what(o) {}
      void run(objective const&, start_judge& judge) override {
        candidate c{graph(op_graph(from.graph)), from.order, from.result};
        if (auto e = run_anyway{what}.apply(c)) {
          auto const v = judge.judge(std::move(e->graph), std::move(e->order), "broken");
          if (v.peak_bytes < INT64_MAX) judge.keep();
        }
      }
    };
    return std::make_unique<points>(from, what);
  }
};

}  // namespace

TEST_CASE("a candidate of a user's own mutator or start that breaks a pin is refused") {
  auto const plain = ladder();
  op_id what = nothing<op_id>;
  for (auto o : plain.ops())
    if (what == nothing<op_id> && plain.outputs(o).size() == 1 && plain.uses(plain.output(o)).size() > 1) what = o;
  REQUIRE(what != nothing<op_id>);
  for (auto p : {pin::keep, pin::run_once, pin::never_out}) {
    auto const g = pinned(plain, {{p, what}});
    auto const options = searching(0.2, 200, false);
    auto const by_mutator = optimize(g, runs_anyway{what}, options);
    CHECK(verify_plan(g, by_mutator.placed).message() == "");
    CHECK(broken_pins(g, by_mutator.placed.graph).none());
    CHECK((by_mutator.candidates > 1 || p != pin::never_out));
    auto with_start = options;
    with_start.set(std::make_shared<breaking_starts const>(what));
    auto const by_start = optimize(g, no_moves{}, with_start);
    CHECK(broken_pins(g, by_start.placed.graph).none());
  }
}

TEST_CASE("seeds and solvers do nothing that a filter may forbid") {
  auto const g = ladder();
  auto const never = filter([](auto const&, auto const&) { return false; });
  auto const recomputed = [&](auto const& moves) {
    auto const found = optimize(g, moves, searching(0.4, 300, true));
    CHECK(verify_plan(g, found.placed).message() == "");
    return found.placed.graph.op_count() > g.op_count();
  };
  CHECK(recomputed(no_moves{}));  // a solver alone, asked for by that
  CHECK(recomputed(rematerialize{} | truncate(8)));
  CHECK(!recomputed(rematerialize{} | never));
  CHECK(!recomputed(rematerialize{} | never | truncate(8)));
  CHECK(!recomputed(chain(rematerialize{} | never, swap{} | never)));
  CHECK(!recomputed(zip(reorder{}, rematerialize{} | never | sample(4, 1))));
  CHECK(!recomputed(any_mutator(rematerialize{} | never)));
  // Beside it a leaf that recomputes allows it.
  CHECK(recomputed(chain(swap{} | never, rematerialize{} | truncate(8))));
  // Swaps are not recomputations.
  auto const swaps = optimize(g, chain(rematerialize{} | never, swap{} | truncate(16)), searching(0.4, 300, true));
  for (auto o : g.ops())
    if (!flow::is_view(g, o)) CHECK(runs_of(swaps.placed.graph, o) == 1);
  auto linked = all_solvers;
  linked.link = 1e12;
  auto options = searching(0.4, 300, false);
  options.set(solver_seeds(linked));
  CHECK(optimize(g, swap{} | never, options).placed.graph.op_count() == g.op_count());
}

TEST_CASE("rules by pattern and id: what matches nothing, is out of range or excludes each other is refused") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f32, {4}}, "x");
  auto const y = edit.add(op::relu{}, {x})[0];
  edit.set_name(edit.graph().producer(y), "blocks.0.relu");
  edit.set_name(y, "hidden");
  edit.keep(edit.add(op::tanh{}, {y})[0], role::output);
  auto const g = graph(std::move(edit).finish());
  CHECK(pinned(g, {{pin::keep, "hid*"}}).pins(y) == pin_set(pin::keep));
  CHECK(pinned(g, {{pin::run_once, "blocks.*.relu"}}).pins(id_at<op_id>(0)) == pin_set(pin::run_once));
  CHECK(pinned(g, {{pin::never_out, "tanh"}}).pins(id_at<op_id>(1)) == pin_set(pin::never_out));
  CHECK(pinned(g, {{pin::keep | pin::never_in_parts, y}}).pins(id_at<op_id>(0)) == (pin::keep | pin::never_in_parts));
  CHECK(pinned(g, pin_rules{}).digest() == g.digest());
  auto const refused = [&](pin_rule r) { return message_of([&] { (void)pinned(g, {std::move(r)}); }); };
  CHECK(refused({pin::keep, "blocks.1.*"}) == "pin keep: no op or value matches \"blocks.1.*\"");
  CHECK(refused({pin::run_once, "x"}) == "pin run_once: no op or value matches \"x\"");
  CHECK(refused({pin::run_once, id_at<op_id>(9)}) == "pin run_once: there is no op 9");
  CHECK(refused({pin::never_out, id_at<value_id>(9)}) == "pin never_out: there is no value 9");
  CHECK(refused({pin::keep | pin::run_again, y}) ==
        "graph: op 0 (blocks.0.relu) is pinned run_again and keep, which exclude each other");
}
