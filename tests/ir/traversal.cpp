#include <neap/ir/traversal.hpp>

#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace neap;
using neap::testing::random_graph;

namespace {

/// Before and after of every op, straight from the definition.
std::vector<std::vector<bool>> closure(op_graph const& g) {
  auto const n = g.op_count();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));  // [o][p]: p must run before o
  for (auto o : g.ops()) {
    for (auto v : g.inputs(o))
      if (auto p = g.producer(v); p != nothing<op_id>) before[index(o)][index(p)] = true;
    for (auto p : g.order_after(o)) before[index(o)][index(p)] = true;
  }
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < n; ++i)
      if (before[i][k])
        for (std::size_t j = 0; j < n; ++j)
          if (before[k][j]) before[i][j] = true;
  return before;
}

op_edges edges_of(std::size_t n, std::vector<std::pair<std::uint32_t, std::uint32_t>> const& list) {
  op_edges e;
  e.before.build(n, [&](auto&& pair) {
    for (auto [a, b] : list) pair(op_id{b}, op_id{a});
  });
  e.after.build(n, [&](auto&& pair) {
    for (auto [a, b] : list) pair(op_id{a}, op_id{b});
  });
  return e;
}

}  // namespace

TEST_CASE("orders are topological, complete and repeatable") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    auto const g = random_graph(seed, {.copies = 3, .swaps = 1});
    CAPTURE(seed);
    CHECK(is_acyclic(g));
    CHECK(find_cycle(g).empty());
    for (auto const& order : {kahn_order(g), topological_order(g), depth_first_order(g)})
      CHECK(is_topological(g, order));
    auto copy = g;
    CHECK(topological_order(copy) == topological_order(g));
    CHECK(depth_first_order(copy) == depth_first_order(g));
    auto order = topological_order(g);
    CHECK(std::ranges::is_permutation(order, kahn_order(g)));
    order.pop_back();
    CHECK_FALSE(is_topological(g, order));
    order.push_back(order.front());
    if (order.size() > 1) CHECK_FALSE(is_topological(g, order));
  }
}

TEST_CASE("the topological order keeps ids where they are an order already") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto const g = random_graph(seed, {.updates = false});
    auto const order = topological_order(g);
    CHECK(std::ranges::is_sorted(order));
  }
}

TEST_CASE("cones agree with the transitive closure") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto const g = random_graph(seed, {.copies = 2});
    CAPTURE(seed);
    auto const before = closure(g);
    auto const e = all_edges(g);
    auto const all = all_ancestors(e);
    auto const depth = depths(g);
    for (auto o : g.ops()) {
      auto const up = ancestors(e, o), down = descendants(e, o);
      std::uint32_t deepest = 0;
      for (auto p : g.ops()) {
        REQUIRE(up.test(index(p)) == before[index(o)][index(p)]);
        REQUIRE(down.test(index(p)) == before[index(p)][index(o)]);
        if (before[index(o)][index(p)]) {
          deepest = std::max(deepest, depth[p] + 1);
          CHECK(depth[p] < depth[o]);
        }
      }
      CHECK(all[o] == up);
      CHECK(depth[o] == deepest);
    }
  }
}

TEST_CASE("a cycle is found and named") {
  // 0 -> 1 -> 2 -> 3 -> 1, 3 -> 4
  auto const e = edges_of(5, {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}});
  CHECK(kahn_order(e).size() == 1);
  auto const cycle = find_cycle(e);
  REQUIRE(cycle.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    auto const after = e.after[cycle[i]];
    CHECK(std::ranges::find(after, cycle[(i + 1) % 3]) != after.end());
  }
  auto const self = edges_of(1, {{0, 0}});
  CHECK(find_cycle(self) == std::vector{op_id{0}});
  CHECK(depth_first_order(e).size() == 5);
}

TEST_CASE("reverse post-order keeps chains together") {
  // 0 -> 1 -> 2, 0 -> 3 -> 4: one branch is finished before the other begins; breadth first alternates.
  auto const e = edges_of(5, {{0, 1}, {1, 2}, {0, 3}, {3, 4}});
  std::vector const along{op_id{0}, op_id{1}, op_id{2}, op_id{3}, op_id{4}};
  CHECK(depth_first_order(e) == along);
  std::vector const across{op_id{0}, op_id{1}, op_id{3}, op_id{2}, op_id{4}};
  CHECK(kahn_order(e) == across);
}

TEST_CASE("an empty graph has empty answers") {
  testing::toy_graph const g;
  CHECK(topological_order(g).empty());
  CHECK(depth_first_order(g).empty());
  CHECK(kahn_order(g).empty());
  CHECK(is_acyclic(g));
}
