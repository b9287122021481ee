#include <neap/mutate/offload.hpp>

#include <neap/memory/make_plan.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/schedule/order.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/check_edit.hpp"
#include "../support/deep_graph.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/random_graph.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

namespace {

/// What ops bring along; a link of so many bytes a second.
struct linked {
  double bytes_per_second;
  double operator()(op_graph const& g, op_id o) const {
    if (auto const s = flow::stream(g, o); s != op_stream::compute) {
      auto const v = s == op_stream::to_host ? g.inputs(o)[0] : g.output(o);
      return static_cast<double>(g.bytes(g.storage(v))) / bytes_per_second;
    }
    return std::max(flow::seconds(g, o), 0.0);
  }
};
constexpr memory_options as_it_is{.alignment = 1, .takeover = false};

inline candidate in_own_order(op_graph const& g, linked cost) {
  schedule order;
  for (auto o : g.ops()) order.order.push_back(o);
  return {g, order, simulate(g, order, cost, as_it_is)};
}

/// Three values of 100 bytes, made in 1 s each; the first is read `again` at the end.
graph idle_value(bool again = true) {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source_at(role::input, tensor_layout::dense({dtype::u8, {1}}), "x");
  auto const make = [&](std::vector<value_id> in, std::string const& name) {
    op::opaque what;
    what.seconds = 1;
    output_rule const out[] = {{tensor_layout::dense({dtype::u8, {100}}), alias_kind::fresh, -1, -1}};
    return edit.output(edit.add_opaque(name, what, in, out));
  };
  auto const a = make({x}, "a"), b = make({a}, "b"), c = make({b}, "c");
  edit.keep(make(again ? std::vector{a, c} : std::vector{c}, "d"), role::output);
  return graph(std::move(edit).finish());
}

inline std::size_t count_waits(op_graph const& g) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.template as<op::wait>(o) != nullptr;
  return n;
}

}  // namespace

TEST_CASE("computations wait for a store that would end too late, for as long as it takes") {
  auto const g = idle_value();
  // c runs from 2 to 3 beside a, b and itself: 301 bytes. Stored from 1 on, a is outside at 1 + 100 / rate.
  for (double const rate : {200.0, 100.0, 50.0, 25.0}) {
    CAPTURE(rate);
    auto const c = in_own_order(g, {rate});
    REQUIRE(c.result.peak_bytes == 301);
    REQUIRE(c.result.peak_position == 2);
    auto stream = neap::swap{rate}(c);
    auto const m = stream.next();
    REQUIRE(m);
    auto const e = apply_mutation(*m, c);
    REQUIRE(e);
    require_same(*e, run_symbolically(g, c.order));
    auto const r = simulate(e->graph, e->order, linked{rate}, as_it_is);
    double const outside = 1 + 100 / rate;
    CHECK(count_waits(e->graph) == (outside > 2 ? 1 : 0));
    double const c_ends = std::max(outside, 2.0) + 1;
    CHECK(r.latency == c_ends + 100 / rate + 1);    // d waits for the load, which begins when c has ended
    CHECK(r.bytes_at[e->order.size() - 1] == 301);  // a again, c and d
    for (std::uint32_t p = 0; p < e->order.size(); ++p)
      if (e->graph.name(e->order[p]).empty() && e->graph.target(e->order[p]) == "c") CHECK(r.bytes_at[p] == 201);
  }
}

TEST_CASE("a store that an earlier swap has left under way at the peak is waited for there") {
  auto const g = idle_value();
  auto const c = in_own_order(g, {50});
  auto const swapped = apply_mutation(swap_out{g.storage(g.output(op_id{0})), 1, 3, 50}, c);  // nobody waits for it
  REQUIRE(swapped);
  CHECK(count_waits(swapped->graph) == 0);
  auto now = candidate{swapped->graph, swapped->order, simulate(swapped->graph, swapped->order, linked{50}, as_it_is)};
  CHECK(now.result.bytes_at[now.result.peak_position] == 301);
  stall const m{swapped->graph.producer(swapped->graph.output(op_id{4})), 3};
  REQUIRE(swapped->graph.as<op::store>(m.store));
  auto const e = apply_mutation(m, now);
  REQUIRE(e);
  require_same(*e, run_symbolically(g, c.order));
  auto const r = simulate(e->graph, e->order, linked{50}, as_it_is);
  CHECK(count_waits(e->graph) == 1);
  CHECK(r.bytes_at[4] == 201);  // a, store, b, wait, c
  CHECK(r.start[4] == 3);
  // A wait before it takes the place of the one that is there.
  now = {e->graph, e->order, r};
  auto const earlier = apply_mutation(stall{m.store, 2}, now);
  REQUIRE(earlier);
  CHECK(count_waits(earlier->graph) == 1);
  CHECK(earlier->graph.as<op::wait>(earlier->order[2]));
  CHECK(!apply_mutation(stall{m.store, 0}, now));  // not before the store
  CHECK(!apply_mutation(stall{m.store, 6}, now));  // not behind its load
}

TEST_CASE("what is needed last moves out wherever a target is passed; the plans are right") {
  std::size_t applied = 0, reached = 0, waits = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(300u); ++seed) {
    CAPTURE(seed);
    auto const g = opaque_graph(seed, 10 + seed % 30);
    auto const c = in_own_order(g, {seed % 2 ? 1e9 : 1e8});
    auto const expected = run_symbolically(g, c.order);
    for (double const ratio : {0.9, 0.7, 0.5}) {
      auto const target = static_cast<bytes_t>(ratio * static_cast<double>(c.result.peak_bytes));
      auto const e = apply_mutation(offload{target, seed % 2 ? 1e9 : 1e8, static_cast<double>(seed % 3)}, c);
      if (!e) continue;
      require_same(*e, expected);
      linked const cost{seed % 2 ? 1e9 : 1e8};
      auto const order = refine{.limit = target, .sink = false}(flow_facts(e->graph, cost, as_it_is), e->order);
      auto const r = simulate(e->graph, order, cost, as_it_is);
      ++applied, waits += count_waits(e->graph);
      reached += r.peak_bytes <= target;
      auto p = make_plan(candidate{e->graph, order, r}, g, as_it_is);
      auto const v = verify_plan(g, p);
      REQUIRE_MESSAGE(v.ok(), v.message());
    }
  }
  CHECK(applied > testing::cases(300u));
  CHECK(reached > testing::cases(60u));
  CHECK(waits > testing::cases(300u));
}

TEST_CASE("what is stored already comes back from there, wherever the order has that store") {
  std::size_t applied = 0, late = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(300u); ++seed) {
    CAPTURE(seed);
    auto const g = opaque_graph(seed, 10 + seed % 30);
    linked const cost{1e8};
    auto const c = in_own_order(g, cost);
    auto const expected = run_symbolically(g, c.order);
    auto const e = apply_mutation(offload{c.result.peak_bytes / 2, 1e8, 0}, c);
    if (!e) continue;
    // Each store right before the first op that needs it to be there.
    auto const& out = e->graph;
    flow_facts const facts(out, cost, as_it_is);
    schedule order;
    auto const needs = [&](op_id o, op_id store) {
      for (auto v : out.inputs(o))
        if (out.producer(v) == store) return true;
      for (auto before : facts.after(o))
        if (before == store) return true;
      return false;
    };
    std::vector<op_id> waiting;
    for (auto o : e->order) {
      for (auto& store : waiting)
        if (store != nothing<op_id> && needs(o, store)) order.order.push_back(std::exchange(store, nothing<op_id>));
      if (out.as<op::store>(o)) waiting.push_back(o);
      else order.order.push_back(o);
    }
    for (auto store : waiting)
      if (store != nothing<op_id>) order.order.push_back(store);
    REQUIRE(check_order(out, order).ok());
    candidate const stored{out, order, simulate(out, order, cost, as_it_is)};
    for (double const ratio : {0.9, 0.6, 0.3}) {
      auto const target = static_cast<bytes_t>(ratio * static_cast<double>(stored.result.peak_bytes));
      auto const again = apply_mutation(offload{target, 1e8, static_cast<double>(seed % 3)}, stored);
      if (!again) continue;
      ++applied, late += order != e->order;
      require_same(*again, expected);
    }
  }
  CHECK(applied > testing::cases(200u));
  CHECK(late > testing::cases(100u));
}

TEST_CASE("a deep chain meets every limit down to what one layer needs, however slow the link is") {
  for (bool const mixed : {false, true})
    for (double const rate : {1e6, 1e8, 1e10}) {
      CAPTURE(mixed);
      CAPTURE(rate);
      auto const g = deep_graph({.layers = 60, .mixed = mixed}).program;
      auto const c = in_own_order(g, {rate});
      double slowest = 0;
      for (double const ratio : {0.8, 0.5, 0.3, 0.2}) {
        auto const target = static_cast<bytes_t>(ratio * static_cast<double>(c.result.peak_bytes));
        auto const e = apply_mutation(offload{target, rate}, c);
        REQUIRE(e);
        auto const r = simulate(e->graph, e->order, linked{rate}, as_it_is);
        CHECK(r.peak_bytes <= target);
        CHECK(r.latency >= slowest);  // less memory takes more time
        slowest = r.latency;
      }
    }
}

TEST_CASE("donated inputs move out before anything is written on them, and buffers that are filled in parts") {
  for (bool const in_parts : {false, true}) {
    CAPTURE(in_parts);
    graph_editor edit{operator_table(standard_operators::facets)};
    auto const layout = [](std::int64_t n, std::int64_t offset = 0) {
      auto l = tensor_layout::dense({dtype::u8, {n}});
      l.offset = offset;
      return l;
    };
    auto const make = [&](std::vector<value_id> in, output_rule const& rule) {
      op::opaque what;
      what.seconds = rule.alias == alias_kind::view ? 0 : 10;
      return edit.output(edit.add_opaque(rule.alias == alias_kind::view ? "view" : "f", what, in, {&rule, 1}));
    };
    auto whole = edit.add_source_at(in_parts ? role::input : role::donated, layout(100), "x");
    if (in_parts) {
      auto const left = make({whole}, {layout(50), alias_kind::fresh, -1, 100});
      auto const both = make({whole, left}, {layout(50, 50), alias_kind::fresh, 1, 100});
      whole = make({both}, {layout(100), alias_kind::view, 0, -1});
    }
    auto y = make({whole}, {layout(100), alias_kind::fresh, -1, 100});
    for (int i = 0; i < 4; ++i) y = make({y}, {layout(100), alias_kind::fresh, -1, 100});
    edit.keep(make({y, whole}, {layout(10), alias_kind::fresh, -1, 10}), role::output);
    auto const g = graph(std::move(edit).finish());
    auto const c = in_own_order(g, linked{100});
    auto const most = c.result.peak_bytes - 90;
    auto const moved = apply_mutation(offload{.target = most, .bytes_per_second = 100}, c);
    REQUIRE(moved);
    std::vector<edited> all{*moved};
    auto stream = swap{100}(c);
    for (auto m = stream.next(); m; m = stream.next())
      if (auto e = apply_mutation(*m, c)) all.push_back(std::move(*e));
    CHECK(all.size() > 1);
    for (auto const& e : all) {
      CHECK(verify(e.graph).message() == "");
      auto const result = simulate(e.graph, e.order, linked{100}, as_it_is);
      CHECK(result.peak_bytes <= most);
      auto const p = make_plan(candidate{e.graph, e.order, result}, g, as_it_is);
      CHECK(verify_plan(g, p, linked{100}).message() == "");
    }
  }
}

TEST_CASE("a graph that needs no room, or has nothing idle, stays as it is") {
  auto const c = in_own_order(idle_value(), {100});
  CHECK(!apply_mutation(offload{c.result.peak_bytes, 100}, c));
  CHECK(!apply_mutation(offload{0, 100},
                        in_own_order(idle_value(false), {100})));  // each value is read at once, and no more
}
