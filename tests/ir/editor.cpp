#include <neap/ir/editor.hpp>
#include <neap/ir/verify.hpp>

#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::random_graph;
using neap::testing::toy_operators;
namespace toy = neap::testing::toy;

namespace {

bool sound(op_graph const& g) {
  auto const s = verify(g);
  if (!s) MESSAGE(s.message());
  return s.ok();
}
tensor_type const matrix{dtype::f32, {4, 4}};

}  // namespace

TEST_CASE("editing nothing changes nothing") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const g = random_graph(seed, {.parts = true, .copies = 1});
    CHECK(graph_editor(g).finish() == g);
    graph_editor all(g);
    all.derive_all();
    CHECK(std::move(all).finish() == g);
  }
}

TEST_CASE("an update waits for every other reader of what it overwrites, whenever they are added") {
  graph_editor edit(toy_operators::facets);
  auto const w = edit.add_source(role::weight, matrix, "w"), x = edit.add_source(role::input, matrix);
  auto const view = edit.add(toy::transpose{}, {w})[0];
  auto const y = edit.add(toy::matmul{}, {x, view})[0];
  auto const next = edit.add(toy::descend{}, {w, y})[0];
  auto const late = edit.add(toy::unary{}, {w})[0];
  edit.keep(late, role::output);
  op_graph g = std::move(edit).finish();
  REQUIRE(sound(g));
  auto const update = g.producer(next);
  CHECK(g.storage(next) == g.storage(w));
  CHECK(g.storage(view) == g.storage(w));
  CHECK(g.record(next).version == 1);
  auto const expects = [&](std::vector<op_id> const& ops) { CHECK(std::ranges::equal(g.order_after(update), ops)); };
  expects({g.producer(view), g.producer(y), g.producer(late)});

  graph_editor more(g);  // a reader of the new version is not waited for, one of the old version is
  auto const again = more.clone(g.producer(y));
  auto const after = more.add(toy::unary{}, {next})[0];
  more.keep(after, role::output), more.keep(more.output(again), role::output);
  g = std::move(more).finish();
  REQUIRE(sound(g));
  expects({g.producer(view), g.producer(y), g.producer(late), again});

  graph_editor less(g);  // a reader that goes is waited for no more
  less.set_input(g.producer(late), 0, x);
  g = std::move(less).finish();
  REQUIRE(sound(g));
  expects({g.producer(view), g.producer(y), again});
  CHECK_THROWS_WITH(graph_editor(g).clone(update), "an in-place update cannot be computed again");
}

TEST_CASE("a view that is given another base moves to its storage, and what looks at it too") {
  graph_editor edit(toy_operators::facets);
  auto const x = edit.add_source(role::input, matrix);
  auto const a = edit.add(toy::unary{}, {x})[0];
  auto const view = edit.add(toy::transpose{}, {a})[0];
  auto const part = edit.add(toy::rows{1, 2}, {view})[0];
  edit.keep(edit.add(toy::unary{}, {part})[0], role::output);
  op_graph const g = std::move(edit).finish();
  graph_editor move(g);
  auto const copy = move.clone(g.producer(a));
  move.replace_uses(a, move.output(copy));
  SUBCASE("the old base stays") {
    op_graph const h = std::move(move).finish();
    CHECK(sound(h));
    CHECK(h.storage(part) == h.storage(h.output(copy)));
    CHECK(h.storage(part) != h.storage(a));
  }
  SUBCASE("the old base goes") {
    move.remove(g.producer(a));
    op_graph const h = std::move(move).finish();
    CHECK(sound(h));
    CHECK(h.op_count() == g.op_count());
    CHECK(h.storage_count() == g.storage_count());
    CHECK(h.digest() == g.digest());
  }
}

TEST_CASE("an op whose results are needed cannot be removed") {
  graph_editor edit(toy_operators::facets);
  auto const x = edit.add_source(role::input, matrix);
  auto const a = edit.add(toy::unary{}, {x})[0], b = edit.add(toy::unary{}, {a})[0];
  edit.keep(b, role::output);
  op_graph const g = std::move(edit).finish();
  graph_editor one(g), two(g);
  one.remove(g.producer(a)), two.remove(g.producer(b));
  CHECK_THROWS_WITH(std::move(one).finish(), "graph: a removed op's output is still read");
  CHECK_THROWS_WITH(std::move(two).finish(), "graph: a removed op's output is kept");
}

TEST_CASE("origins: a copy has its original's, a new op one of its own even after removals") {
  graph_editor edit(toy_operators::facets);
  auto const x = edit.add_source(role::input, matrix);
  std::vector<value_id> v;
  for (int i = 0; i < 4; ++i) v.push_back(edit.add(toy::drop{i, 0.5}, {x})[0]);
  op_graph g = std::move(edit).finish();
  graph_editor next(std::move(g));
  next.remove(op_id{0});
  auto const copy = next.clone(op_id{2});
  CHECK(next.graph().origin(copy) == op_id{2});
  next.add(toy::drop{99, 0.5}, {x});
  g = std::move(next).finish();
  CHECK(sound(g));
  std::vector<std::size_t> origins;
  for (auto o : g.ops()) origins.push_back(index(g.origin(o)));
  CHECK(origins == std::vector<std::size_t>{1, 2, 3, 2, 4});
}

TEST_CASE("a value is kept once, sources keep their role, and replacing a kept value moves the keeping") {
  graph_editor edit(toy_operators::facets);
  auto const x = edit.add_source(role::input, matrix);
  auto const a = edit.add(toy::unary{}, {x})[0], b = edit.add(toy::unary{1}, {x})[0];
  edit.keep(a, role::output), edit.keep(a, role::loss), edit.keep(x, role::output);
  edit.replace_uses(a, b);
  op_graph const g = std::move(edit).finish();
  CHECK(sound(g));
  CHECK(std::ranges::equal(g.kept(), std::vector{b, x}));
  CHECK(g.role(x) == role::input);
  CHECK(g.role(b) == role::loss);
  graph_editor drop(g);
  drop.drop(b), drop.drop(x);
  op_graph const none = std::move(drop).finish();
  CHECK(sound(none));
  CHECK(none.kept().empty());
}

TEST_CASE("shape errors and strange values are refused where they are added; an operator that is in no table joins") {
  graph_editor edit(toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {4, 3}});
  CHECK_THROWS_WITH(edit.add(toy::matmul{}, {x, x}), "matmul: inner extents differ, f32[4,3] x f32[4,3]");
  CHECK_THROWS_WITH(edit.add(toy::unary{}, {value_id{7}}), "graph: an op reads a value that is not in the graph");
  struct small : operator_set<toy::unary> {};
  graph_editor other(small::facets);
  auto const y = other.add_source(role::input, matrix);
  auto const z = other.add(toy::matmul{}, {y, y})[0];
  CHECK(other.graph().facets(other.graph().producer(z)).name == "matmul");
  CHECK(other.graph().kind_count() == 2);
  CHECK_THROWS_AS(other.add_source(role::gradient, matrix), neap::error);
}

TEST_CASE("many layouts are found again") {
  graph_editor edit(toy_operators::facets);
  std::vector<value_id> v;
  for (std::int64_t i = 1; i <= 300; ++i) v.push_back(edit.add_source(role::input, {dtype::f32, {i, 2}}));
  for (std::int64_t i = 1; i <= 300; ++i) v.push_back(edit.add_source(role::input, {dtype::f32, {i, 2}}));
  op_graph const g = std::move(edit).finish();
  for (std::size_t i = 0; i < 300; ++i) {
    CHECK(g.record(v[i]).layout == g.record(v[i + 300]).layout);
    CHECK(g.type(v[i]).extent(0) == static_cast<std::int64_t>(i) + 1);
  }
}

TEST_CASE("the inputs of an op already there may be given as they lie in the graph") {
  graph_editor edit(toy_operators::facets);
  auto const x = edit.add_source(role::input, matrix);
  edit.add(toy::binary{}, {x, x});
  for (int i = 0; i < 100; ++i) edit.emit(edit.graph().view(op_id{0}), edit.graph().inputs(op_id{0}));
  op_graph const g = std::move(edit).finish();
  CHECK(sound(g));
  CHECK(g.uses(x).size() == 202);
}

TEST_CASE("a storage is updated 65535 times at most") {
  tensor_layout const row = tensor_layout::dense({dtype::f32, {4}});
  output_rule const updates[] = {{row, alias_kind::update, 0}}, makes[] = {{row, alias_kind::fresh, -1}};
  auto const updated = [&](int times) {
    graph_editor edit(toy_operators::facets);
    auto v = edit.add_source_at(role::buffer, row);
    for (int k = 0; k < times; ++k) {
      if (k % 100 == 50) edit.add_opaque("read", {}, {&v, 1}, makes);
      v = edit.output(edit.add_opaque("write", {}, {&v, 1}, updates));
    }
    return std::move(edit).finish();
  };
  auto const g = updated(0xffff);
  REQUIRE(sound(g));
  for (auto o : g.ops()) {
    bool const follows = g.record(g.output(o)).alias == alias_kind::update && g.record(g.output(o)).version % 100 == 51;
    REQUIRE(g.order_after(o).size() == follows);
    if (follows) REQUIRE(index(g.order_after(o)[0]) + 1 == index(o));
  }
  CHECK_THROWS_WITH_AS(updated(0x10000), "graph: more than 65535 updates of one storage", error);
}

TEST_CASE("copies of a graph share its tables until one is edited; a copy of a graph under edit has its own") {
  graph_editor edit(toy_operators::facets);
  auto const x = edit.add_source(role::input, matrix), y = edit.add(toy::unary{}, {x})[0];
  op_graph const midway = edit.graph();
  auto const z = edit.add(toy::unary{}, {y})[0];
  CHECK(midway.op_count() == 1);
  edit.keep(z, role::loss);
  graph_editor other = edit;
  other.add(toy::unary{}, {z});
  CHECK(edit.graph().op_count() == 2);
  op_graph const g = std::move(edit).finish();
  CHECK(op_graph{}.value_count() == 0);

  op_graph const copy = g;
  CHECK(copy.sources().data() == g.sources().data());
  auto const digest = g.digest();
  graph_editor again(copy);
  again.keep(y, role::output);
  op_graph const edited = std::move(again).finish();
  CHECK(g.digest() == digest);
  CHECK(copy == g);
  CHECK(!(edited == g));
  CHECK(edited.sources().data() != g.sources().data());
  CHECK(op_graph(edited).sources().data() == edited.sources().data());
  CHECK(std::move(other).finish().op_count() == 3);
}
