#include <neap/ir/dominators.hpp>

#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace neap;
using neap::testing::random_graph;

namespace {

/// Whether every way from a root to `to` leads through `through`: walk from the roots without it.
std::vector<bool> reached_without(op_edges const& e, op_id through) {
  std::vector<bool> met(e.op_count());
  std::vector<op_id> stack;
  for (auto o : id_range<op_id>(e.op_count()))
    if (e.before[o].empty() && o != through) met[index(o)] = true, stack.push_back(o);
  while (!stack.empty()) {
    auto const o = stack.back();
    stack.pop_back();
    for (auto p : e.after[o])
      if (p != through && !met[index(p)]) met[index(p)] = true, stack.push_back(p);
  }
  return met;
}

void check_tree(dominator_tree const& tree, op_edges const& e) {
  auto const n = e.op_count();
  for (auto a : id_range<op_id>(n)) {
    auto const met = reached_without(e, a);
    std::size_t count = 0;
    for (auto b : id_range<op_id>(n)) {
      REQUIRE(tree.dominates(a, b) == !met[index(b)]);
      count += tree.dominates(a, b);
    }
    auto const below = tree.dominated_by(a);
    CHECK(below.size() == count);
    CHECK(below.front() == a);
    for (auto b : below) CHECK(tree.dominates(a, b));
    // The parent is the nearest: it dominates a, and every other strict dominator of a dominates it.
    if (auto const p = tree.parent(a); p != nothing<op_id>) {
      CHECK(p != a);
      for (auto d : id_range<op_id>(n))
        if (d != a && tree.dominates(d, a)) CHECK(tree.dominates(d, p));
    } else {
      for (auto d : id_range<op_id>(n)) CHECK((d == a || !tree.dominates(d, a)));
    }
  }
}

}  // namespace

TEST_CASE("dominators and post-dominators agree with their definition") {
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    auto const g = random_graph(seed, {.copies = 2, .swaps = 1});
    CAPTURE(seed);
    check_tree(dominators(g), data_edges(g));
    check_tree(post_dominators(g), data_edges(g).reversed());
    check_tree(dominator_tree(all_edges(g)), all_edges(g));
  }
}

TEST_CASE("a diamond") {
  using namespace neap::testing;
  graph_editor edit(toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {4, 4}});
  auto const a = edit.add(toy::unary{}, {x})[0];
  auto const b = edit.add(toy::unary{1}, {a})[0], c = edit.add(toy::unary{2}, {a})[0];
  auto const d = edit.add(toy::binary{}, {b, c})[0];
  edit.keep(d, role::output);
  toy_graph const g(std::move(edit).finish());
  auto const tree = dominators(g);
  CHECK(tree.parent(g.producer(d)) == g.producer(a));
  CHECK(tree.parent(g.producer(a)) == nothing<op_id>);
  CHECK(post_dominators(g).parent(g.producer(a)) == g.producer(d));
  CHECK(tree.dominated_by(g.producer(a)).size() == 4);
}

TEST_CASE("a cyclic graph is refused") {
  op_edges e;
  auto const loop = [](auto&& pair) { pair(op_id{0}, op_id{0}); };
  e.before.build(1, loop), e.after.build(1, loop);
  CHECK_THROWS_AS(dominator_tree{e}, neap::error);
}
