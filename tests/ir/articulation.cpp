#include <neap/ir/articulation.hpp>

#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace neap;
using neap::testing::random_graph;

namespace {

/// Parts of the undirected graph without one op.
std::size_t components_without(op_edges const& e, op_id gone) {
  std::vector<bool> met(e.op_count());
  std::size_t parts = 0;
  for (auto root : id_range<op_id>(e.op_count())) {
    if (root == gone || met[index(root)]) continue;
    ++parts;
    std::vector<op_id> stack{root};
    met[index(root)] = true;
    while (!stack.empty()) {
      auto const o = stack.back();
      stack.pop_back();
      for (auto next : {e.before[o], e.after[o]})
        for (auto p : next)
          if (p != gone && !met[index(p)]) met[index(p)] = true, stack.push_back(p);
    }
  }
  return parts;
}

}  // namespace

TEST_CASE("articulation points agree with their definition") {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    auto const g = random_graph(seed, {.copies = 1});
    CAPTURE(seed);
    auto const e = data_edges(g);
    auto const points = articulation_points(g);
    CHECK(std::ranges::is_sorted(points));
    auto const whole = components_without(e, nothing<op_id>);
    for (auto o : g.ops()) {
      bool const lone = e.before[o].empty() && e.after[o].empty();  // its removal takes a part away
      bool const cuts = !lone && components_without(e, o) > whole;
      REQUIRE(std::ranges::binary_search(points, o) == cuts);
    }
    found += points.size();
  }
  CHECK(found > 100);
}

TEST_CASE("waists agree with their definition") {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    auto const g = random_graph(seed, {.most_ops = 20, .opaque = seed % 2 == 0});
    CAPTURE(seed);
    auto const before = all_ancestors(all_edges(g));
    std::vector<op_id> expected;
    for (auto o : g.ops()) {
      bool comparable = true;
      for (auto p : g.ops()) comparable &= p == o || before[o].test(index(p)) || before[p].test(index(o));
      if (comparable) expected.push_back(o);
    }
    std::ranges::sort(expected, {}, [&](op_id o) { return before[o].count(); });
    CHECK(waists(g) == expected);
    found += expected.size();
  }
  CHECK(found > 30);
}

TEST_CASE("a chain is all waist, and its inner ops are articulation points") {
  using namespace neap::testing;
  graph_editor edit(toy_operators::facets);
  auto v = edit.add_source(role::input, {dtype::f32, {4, 4}});
  for (int i = 0; i < 5; ++i) v = edit.add(toy::unary{}, {v})[0];
  edit.keep(v, role::output);
  toy_graph const g(std::move(edit).finish());
  CHECK(waists(g).size() == 5);
  CHECK(articulation_points(g) == std::vector{op_id{1}, op_id{2}, op_id{3}});
}
