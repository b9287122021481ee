#include <neap/blocks/block_chain.hpp>

#include "../support/deep_graph.hpp"
#include "../support/message.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"
#include "../support/sanitized.hpp"
#include "checks.hpp"

#include <doctest/doctest.h>

#include <neap/core/philox.hpp>

using namespace neap;
using namespace neap::testing;

namespace {

/// Another order in which the program can run, deterministic by seed.
schedule shuffled(op_graph const& g, std::uint64_t seed) {
  random_stream draw(seed, 9);
  auto const e = all_edges(g);
  std::vector<std::size_t> missing(g.op_count());
  std::vector<op_id> ready;
  for (auto o : g.ops())
    if ((missing[index(o)] = e.before[o].size()) == 0) ready.push_back(o);
  schedule s;
  while (!ready.empty()) {
    auto const at = draw.below(static_cast<std::uint32_t>(ready.size()));
    std::swap(ready[at], ready.back());
    auto const o = ready.back();
    ready.pop_back();
    s.order.push_back(o);
    for (auto next : e.after[o])
      if (--missing[index(next)] == 0) ready.push_back(next);
  }
  return s;
}

}  // namespace

TEST_CASE("each op in one block or beside them, blocks can run in turn, borders are what crosses: random programs") {
  for (std::uint64_t seed = 0; seed < cases(400u); ++seed) {
    CAPTURE(seed);
    auto const g = seed % 3 == 0 ? opaque_graph(seed, 30) : random_model(seed, 10 + seed % 30);
    auto const order = seed % 4 == 3 ? shuffled(g, seed) : schedule{topological_order(g)};
    block_options o;
    o.kind = static_cast<cut_kind>(seed % 4);
    o.simplify.small_bytes = seed % 5 ? 1 << 20 : 256;
    check_all(g, make_all_graphs(g, order, o));
  }
}

TEST_CASE("any ends will do") {
  for (std::uint64_t seed = 0; seed < cases(300u); ++seed) {
    CAPTURE(seed);
    auto const g = seed % 2 ? opaque_graph(seed, 20) : random_model(seed, 20);
    auto const a = make_all_graphs(g);
    random_stream draw(seed, 4);
    block_ends ends;
    for (std::uint32_t n = 1; n < a.simplified.nodes.size(); ++n)
      if (draw.below(3) == 0) ends.push_back(n);
    ends.push_back(static_cast<std::uint32_t>(a.simplified.nodes.size()));
    auto c = make_chain(g, a.basic, a.simplified, a.backward, ends);
    CHECK(c.blocks.size() == ends.size());
    check_chain(g, c);
    check_classes(g, c, classify(g, c));
  }
}

TEST_CASE("deep models: a block a layer, one value forward and one gradient back") {
  for (bool transformer : {false, true}) {
    auto const model = deep_graph({.layers = 12, .transformer = transformer});
    graph_editor edit{model.program};
    edit.keep(model.layer_inputs.back(), role::output);  // else nothing tells forward from backward
    auto const g = graph(std::move(edit).finish());
    auto const a = make_all_graphs(g);
    check_all(g, a);
    CHECK(a.blocks.is_chain);
    CHECK(a.blocks.epilogue.empty());
    std::vector<value_id> crossing;
    for (auto const& b : a.blocks.blocks) {
      CHECK(b.inputs.size() <= 1);
      crossing.insert(crossing.end(), b.inputs.begin(), b.inputs.end());
    }
    for (std::size_t i = 1; i + 1 < model.layer_inputs.size();
         ++i)  // the layers' borders are among those of the blocks
      CHECK(std::count(crossing.begin(), crossing.end(), model.layer_inputs[i]) == 1);
  }
}

TEST_CASE("a value that skips over the whole program is no chain, and is told at each block that it enters") {
  auto const model = deep_graph({.layers = 12, .long_skip = 3});
  CHECK(message_of([&] { (void)make_all_graphs(model.program); }) ==
        "blocks: the program keeps neither a loss nor an output, so that forward and backward cannot be distinguished");
  graph_editor edit{model.program};
  edit.keep(model.layer_inputs.back(), role::output);
  auto const g = graph(std::move(edit).finish());
  auto const a = make_all_graphs(g, {.cut = {.max_blocks = 6}, .kind = cut_kind::bottom_up});
  check_all(g, a);
  CHECK(!a.blocks.is_chain);
}

TEST_CASE("ends that do not fit are refused") {
  auto const g = random_model(1);
  auto const a = make_all_graphs(g);
  auto const n = static_cast<std::uint32_t>(a.simplified.nodes.size());
  for (auto const& ends :
       {block_ends{n - 1}, block_ends{}, block_ends{n + 1}, block_ends{2, 2, n}, block_ends{3, 2, n}})
    CHECK(message_of([&] { (void)make_chain(g, a.basic, a.simplified, a.backward, ends); }) != std::string("no error"));
}
