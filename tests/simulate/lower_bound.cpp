#include <neap/simulate/lower_bound.hpp>

#include <neap/simulate/simulator.hpp>

#include "../support/random_graph.hpp"
#include "../support/random_order.hpp"

#include <doctest/doctest.h>

using namespace neap;

TEST_CASE("no order has a peak below the bound, nor has a graph with ops computed again, stored and loaded") {
  int met = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    memory_options const options{.alignment = seed % 2 ? 64 : 1, .takeover = seed % 3 != 0};
    auto const plain = testing::random_graph(seed);
    auto const b = peak_lower_bound(plain, options);
    CHECK(!(b.forcing.empty() && b.bytes > flow_facts(plain, no_cost{}, options).resident_bytes()));
    for (std::uint64_t k = 0; k < 4; ++k) {
      auto const s = simulate(plain, testing::random_order(plain, k), no_cost{}, options);
      CHECK(s.peak_bytes >= b.bytes);
      met += s.peak_bytes == b.bytes;
    }
    auto const edited = testing::random_graph(seed, {.copies = 3, .swaps = 3});
    for (std::uint64_t k = 0; k < 4; ++k)
      CHECK(simulate(edited, testing::random_order(edited, k), no_cost{}, options).peak_bytes >= b.bytes);
  }
  CHECK(met > 30);  // and it is not idle
}

TEST_CASE("the bound names what forces it") {
  using namespace testing::toy;
  graph_editor edit(testing::toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {16, 16}});
  auto const a = edit.add(unary{}, {x})[0];
  auto const b = edit.add(matmul{}, {a, x})[0];
  auto const c = edit.add(column_sum{}, {b})[0];
  edit.keep(c, role::output);
  auto const g = std::move(edit).finish();
  auto const bound = peak_lower_bound(g, memory_options{.alignment = 1});
  CHECK(bound.bytes == 1024 + 1024 + 1024 + 256);  // x, a, b, workspace
  REQUIRE(bound.forcing.size() == 1);
  CHECK(bound.forcing[0].op == g.producer(b));
  CHECK(!bound.at_end);

  graph_editor more(g);
  for (auto const& v : {a, b}) more.keep(v, role::output);
  more.keep(more.add(unary{1}, {x})[0], role::output);
  auto const end = peak_lower_bound(std::move(more).finish(), memory_options{.alignment = 1});
  CHECK(end.at_end);
  CHECK(end.bytes == 4 * 1024 + 64);
  CHECK(end.forcing.size() == 4);
}
