#include <neap/mutate/replay.hpp>

#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/check_edit.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/random_graph.hpp"
#include "../support/random_model.hpp"
#include "../support/random_order.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

namespace {

plain_vector<bool> recomputable(op_graph const& g) {
  plain_vector<bool> may(g.op_count(), false);
  for (auto o : g.ops()) may[index(o)] = graph_traits<op_graph>::is_recomputable(g, o);
  return may;
}

struct came_of_it {
  std::size_t copies = 0, loads = 0;
};
/// Random ops are told to run, at random times droppable storages to be forgotten, stored or loaded.
template <class G>
came_of_it replay_at_random(G const& g, schedule const& order, std::uint64_t seed) {
  auto const may = recomputable(g);
  auto const droppable = droppable_storages(g, may);
  random_stream draw(seed, 3);
  replay_builder to(g, order, may);
  // Along the order, so that forgetting means something; here and there an op that is far away.
  for (std::size_t p = 0; p < order.size(); ++p) {
    auto const o = draw.below(12) == 0 ? order[draw.below(static_cast<std::uint32_t>(order.size()))] : order[p];
    if (to.is_ready(o) && draw.below(8) != 0) {
      if (!to.run(o)) return {};
      REQUIRE(to.has_run(o));
    }
    for (int k = 0; k < 3; ++k) {
      if (g.storage_count() == 0) break;
      auto const s = id_at<storage_id>(draw.below(static_cast<std::uint32_t>(g.storage_count())));
      if (!droppable[index(s)]) continue;
      bool const moves = can_leave(g, s) && draw.below(3) != 0;
      if (moves && draw.below(2) == 0) to.load(s);
      else if (moves) to.store(s);
      else to.forget(s);
    }
  }
  auto const e = std::move(to).finish();
  if (!e) return {};
  auto const expected = run_symbolically(g, order);
  REQUIRE_MESSAGE(expected.error.empty(), expected.error);
  require_same(*e, expected);
  came_of_it n;
  for (auto o : e->graph.ops()) {
    n.copies += index(e->graph.origin(o)) < g.op_count() && e->graph.origin(o) != o;
    n.loads += e->graph.template as<op::load>(o) != nullptr;
    // What nobody loads is not stored, what nobody reads not loaded.
    if (e->graph.as<op::store>(o) || e->graph.as<op::load>(o)) CHECK(!e->graph.uses(e->graph.output(o)).empty());
  }
  return n;
}

}  // namespace

TEST_CASE("whatever is told to run, to be forgotten and to be moved, the graph computes the same") {
  std::size_t copies = 0, loads = 0, edited = 0;
  auto const one = [&](auto const& g, std::uint64_t seed) {
    CAPTURE(seed);
    auto const n = replay_at_random(g, schedule{topological_order(g)}, seed);
    copies += n.copies, loads += n.loads, edited += n.copies > 0;
  };
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    one(random_graph(seed), seed);
    one(random_model(seed, 20), seed);
    one(opaque_graph(seed, 30), seed);
  }
  CHECK(edited > 300);
  CHECK(copies > 5000);
  CHECK(loads > 250);
}

TEST_CASE("told nothing, it gives the graph in its order") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const g = random_model(seed, 20);
    schedule const order{topological_order(g)};
    auto const may = recomputable(g);
    auto const e = replay_builder(g, order, may).finish();
    REQUIRE(e);
    CHECK(e->graph == g);
    CHECK(e->order == order);
  }
}

TEST_CASE("a result that was forgotten is made again for who reads it later, from what is there") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const type = tensor_layout::dense({dtype::f32, {256}});
  output_rule const fresh[] = {{type, alias_kind::fresh, -1, -1}};
  auto const op = [&](char const* name, std::vector<value_id> const& in, bool pure = true) {
    op::opaque x;
    x.seconds = 1, x.pure = pure;
    return edit.output(edit.add_opaque(name, x, in, fresh));
  };
  auto const x = edit.add_source_at(role::input, type, "x");
  auto const a = op("a", {x}), b = op("b", {a}), draw = op("draw", {b}, false), c = op("c", {draw}),
             d = op("d", {c, b});
  edit.keep(d, role::loss);
  graph const g(std::move(edit).finish());
  schedule const order{topological_order(g)};
  auto const may = recomputable(g);
  auto const storage = [&](value_id v) { return g.storage(v); };
  auto const ops = [&](value_id v) { return g.producer(v); };
  CHECK(!droppable_storages(g, may)[index(storage(draw))]);  // it may run but once
  CHECK(droppable_storages(g, may)[index(storage(b))]);
  CHECK(!droppable_storages(g, may)[index(storage(d))]);  // kept
  CHECK(!droppable_storages(g, may)[index(storage(x))]);

  replay_builder to(g, order, may);
  CHECK(to.run(ops(c)));
  CHECK(to.has_run(ops(draw)));
  to.forget(storage(a)), to.forget(storage(b));
  auto const e = std::move(to).finish();
  REQUIRE(e);
  std::string text;
  for (auto o : e->order) text += std::string(e->graph.target(o)) + " ";
  CHECK(text == "a b draw c a b d ");

  // What must not run again is refused, not run.
  replay_builder bad(g, order, may);
  CHECK(bad.run(ops(c)));
  bad.forget(storage(draw)), bad.forget(storage(c));
  CHECK(!bad.run(ops(d)));
  CHECK(!std::move(bad).finish());
}
