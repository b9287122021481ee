#include <neap/blocks/cut.hpp>

#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"
#include "checks.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

namespace {

simplified_program random_simplified(std::uint64_t seed, graph& g) {
  g = seed % 2 ? random_model(seed, 40) : opaque_graph(seed, 40);
  auto const d = make_dataflow(g, make_basic(g));
  return simplify(g, d, {.small_bytes = 64});
}

/// Whether weights' values of nodes before n reach nodes behind it when n is gone: by walking the graph.
bool reaches_around(simplified_program const& p, std::uint32_t n) {
  std::vector<unsigned char> met(p.nodes.size());
  for (std::uint32_t m = 0; m < n; ++m) met[m] = p.nodes[m].weighted;
  for (auto const& e : p.edges)  // by `to`: one pass
    if (!e.values.empty() && e.to > n && e.from < n && met[e.from]) return true;
  return false;
}

bool ascend(block_ends const& ends, simplified_program const& p) {
  for (std::size_t i = 1; i < ends.size(); ++i)
    if (ends[i] <= ends[i - 1]) return false;
  return p.nodes.empty() ? ends.empty() : !ends.empty() && ends[0] > 0 && ends.back() == p.nodes.size();
}

}  // namespace

TEST_CASE("separators separate, and no other trained node does") {
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    graph g;
    auto const p = random_simplified(seed, g);
    auto const n = static_cast<std::uint32_t>(p.nodes.size());
    if (n == 0) continue;
    auto const s = separators(p);
    CHECK(s.back() == n - 1);
    for (std::uint32_t i = 0; i + 1 < n; ++i) {
      bool const read = std::any_of(p.edges.begin(), p.edges.end(),
                                    [&](simplified_edge const& e) { return e.from == i && !e.values.empty(); });
      bool const told = std::binary_search(s.begin(), s.end(), i);
      CHECK(told == (p.nodes[i].trained && read && !reaches_around(p, i)));
      found += told;
    }
  }
  CHECK(found > 100);
}

TEST_CASE("all cuts are cuts: ends ascend to the number of nodes, and are not more than asked") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    graph g;
    auto const p = random_simplified(seed, g);
    CHECK(ascend(cut_at_separators(p), p));
    CHECK(ascend(cut_at_repeats(g, p), p));
    for (std::uint32_t most : {1u, 2u, 5u, 1000u}) {
      auto const ends = cut_bottom_up(g, p, {.max_blocks = most});
      CHECK(ascend(ends, p));
      CHECK(ends.size() <= most);
    }
    auto const ends = cut_blocks(g, p, {.max_nodes = 6});
    CHECK(ascend(ends, p));
    // Separators stay ends.
    for (auto end : cut_at_separators(p)) CHECK(std::binary_search(ends.begin(), ends.end(), end));
  }
}

TEST_CASE("bottom up leaves the ends where the fewest bytes cross") {
  // Three groups that are bound by large values inside, and by small ones between.
  graph_editor e{operator_table(standard_operators::facets)};
  auto const op = [&](char const* name, std::vector<value_id> in, std::int64_t rows) {
    output_rule const out[] = {{tensor_layout::dense({dtype::f32, {rows, 64}}), alias_kind::fresh, -1, -1}};
    return e.output(e.add_opaque(name, {}, in, out, name));
  };
  auto const w = e.add_source(role::weight, {dtype::f32, {64}}, "w");
  auto x = op("start", {w}, 4);
  std::vector<value_id> ends;
  for (int group = 0; group < 3; ++group) {
    auto const a = op("a", {x}, 512), b = op("b", {a, w}, 512), c = op("c", {a, b}, 512);
    x = op("join", {c, x}, 4);
    ends.push_back(x);
  }
  e.keep(op("loss", {x, ends[0]}, 1), role::loss);  // and a value that skips: no separators
  auto const g = graph(std::move(e).finish());
  auto const p = simplify(g, make_dataflow(g, make_basic(g)), {.small_bytes = 1});
  REQUIRE(p.nodes.size() == 14);
  auto const cut = cut_bottom_up(g, p, {.max_blocks = 4});
  for (auto end : cut)
    if (end < 14) CHECK((end == 1 || end == 5 || end == 9 || end == 13));
  // The repeated pattern is found, in the phase in which few bytes cross.
  auto const repeats = cut_at_repeats(g, p);
  for (std::uint32_t end : {1u, 5u, 9u, 13u}) CHECK(std::binary_search(repeats.begin(), repeats.end(), end));
}
