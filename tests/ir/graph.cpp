#include <neap/ir/graph.hpp>

#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <type_traits>
#include <unordered_set>

using namespace neap;
using neap::testing::random_graph;
using neap::testing::renumbered;
using neap::testing::toy_graph;
using neap::testing::toy_operators;
namespace toy = neap::testing::toy;

static_assert(std::regular<op_graph> && std::regular<toy_graph>);
static_assert(is_source(role::constant) && !is_source(role::activation));

TEST_CASE("graphs are values: equal copies, told apart by any change, hashed by their digest") {
  std::unordered_set<op_graph> met;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto const g = random_graph(seed, {.copies = 1});
    auto h = g;
    CHECK(h == g);
    met.insert(g), met.insert(h);
    CHECK(met.size() == seed + 1);
    h = toy_graph{};
    CHECK_FALSE(h == g);
    CHECK(h.op_count() == 0);
    auto const other = renumbered(g, seed + 9);
    CHECK(std::hash<op_graph>{}(other) == std::hash<op_graph>{}(g));
  }
}

TEST_CASE("names and origins are a part of a graph, but not of its digest") {
  auto const g = random_graph(3);
  graph_editor edit(g);
  edit.set_name(op_id{0}, "another");
  op_graph const named = std::move(edit).finish();
  CHECK_FALSE(named == g);
  CHECK(named.digest() == g.digest());
  CHECK(named.name(op_id{0}) == "another");
}

TEST_CASE("what a graph says of its parts") {
  graph_editor edit(toy_operators::facets);
  auto const w = edit.add_source(role::weight, {dtype::f32, {4, 4}}, "w");
  auto const t = edit.add(toy::transpose{}, {w})[0];
  auto const y = edit.add(toy::drop{9, 0.5}, {t});
  edit.keep(y[0], role::output);
  op_graph const g = std::move(edit).finish();
  CHECK(g.op_count() == 2);
  CHECK(g.value_count() == 4);
  CHECK(g.storage_count() == 3);
  CHECK(g.resident_bytes() == 64);
  CHECK(g.name(w) == "w");
  CHECK(g.name(op_id{0}).empty());
  CHECK(g.producer(t) == op_id{0});
  CHECK(g.storage(t) == g.storage(w));
  CHECK(g.is_resident(g.storage(t)));
  CHECK(g.as<toy::drop>(op_id{1})->key == 9);
  CHECK(g.as<toy::unary>(op_id{1}) == nullptr);
  CHECK(g.as<toy::transpose>(op_id{0}) != nullptr);
  CHECK(g.facets(op_id{1}).name == "drop");
  CHECK(g.uses(t).size() == 1);
  CHECK(g.uses(t)[0] == use{op_id{1}, 0});
  CHECK(g.is_kept(y[0]));
  CHECK_FALSE(g.is_kept(y[1]));
  CHECK(std::ranges::equal(g.outputs(op_id{1}), y));
  CHECK(g.target(op_id{0}).empty());
}
