#include <neap/mutate/undo.hpp>

#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/check_edit.hpp"
#include "../support/drawn_edit.hpp"
#include "../support/judged.hpp"
#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

TEST_CASE("a stretch without what is done again computes the same; over the whole order nothing is done again") {
  std::size_t undone = 0, nothing_left = 0, chains = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    random_graph_options o;
    o.opaque = seed % 2;
    auto c = judged(random_graph(seed, o), reverse_post_order{}(random_graph(seed, o)));
    auto const plain = c.graph.digest();
    auto const ops = c.graph.op_count();
    auto const expected = run_symbolically(c.graph, c.order);
    random_stream draw(seed, 9);
    for (int step = 0; step < 6; ++step) {  // what a search would do
      if (auto e = drawn_edit(chain(rematerialize{}, neap::swap{}), c, draw, 4))
        c = judged(std::move(e->graph), std::move(e->order)), ++chains;
    }
    auto const n = static_cast<std::uint32_t>(c.order.size());
    for (int tries = 0; tries < 5; ++tries) {
      auto const begin = draw.below(n + 1), end = begin + draw.below(n + 2 - begin);
      CAPTURE(begin);
      CAPTURE(end);
      if (auto e = apply_mutation(undo_stretch{begin, end}, c)) {
        require_same(*e, expected);
        CHECK(e->graph.op_count() < c.graph.op_count());
        CHECK(simulate(e->graph, e->order, unit_cost{}).latency <= c.result.latency);
        ++undone;
      }
    }
    CHECK(!apply_mutation(undo_stretch{3, 3}, c));
    if (auto e = apply_mutation(undo_stretch{0, n}, c)) {
      require_same(*e, expected);
      nothing_left += e->graph.digest() == plain && e->graph.op_count() == ops;
    }
  }
  CHECK(chains > 200);
  CHECK(undone > 150);
  CHECK(nothing_left > 60);  // views that were made again are kept where in-place updates came between
}

TEST_CASE("a value stands in for several copies, unless one is overwritten before another one is read") {
  for (bool const late : {false, true}) {
    CAPTURE(late);
    graph_editor edit(toy_operators::facets);
    auto const x = edit.add_source(role::input, {dtype::f32, {4, 4}}, "x");
    auto const first = edit.add(toy::unary{1}, {x})[0];
    auto const maker = edit.graph().producer(first);
    auto const second = edit.output(edit.clone(maker), 0), third = edit.output(edit.clone(maker), 0);
    std::vector<op_id> order{maker, edit.graph().producer(second)};
    auto const read = [&](value_id v, std::int32_t which) {
      auto const made = edit.add(toy::unary{which}, {v})[0];
      edit.keep(made, role::output);
      return edit.graph().producer(made);
    };
    order.push_back(read(first, 2));
    order.push_back(read(second, 3));
    op::opaque in_place;
    in_place.pointwise = true;
    std::vector<value_id> const written{second};
    std::vector<output_rule> const results{{edit.layout_of(second), alias_kind::fresh, 0, -1}};
    auto const writer = edit.add_opaque("write", in_place, written, results, {}, "");
    edit.keep(edit.output(writer, 0), role::output);
    auto const reader = read(third, 4);
    auto const copy = edit.graph().producer(third);
    if (late) order.insert(order.end(), {writer, copy, reader});
    else order.insert(order.end(), {copy, reader, writer});
    auto const c = judged(toy_graph(std::move(edit).finish()), schedule{order});
    auto const expected = run_symbolically(c.graph, c.order);
    REQUIRE_MESSAGE(expected.error.empty(), expected.error);
    auto const e = apply_mutation(undo_stretch{0, static_cast<std::uint32_t>(order.size())}, c);
    REQUIRE(e);
    require_same(*e, expected);
    CHECK(e->graph.op_count() == c.graph.op_count() - (late ? 1 : 2));
  }
}
