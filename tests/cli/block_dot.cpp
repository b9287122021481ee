#include "../../examples/cli/block_dot.hpp"

#include "../support/count.hpp"
#include "../support/message.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

TEST_CASE("a box an op, a node, a block, a computation; every arrow leads between what is drawn") {
  using enum block_drawing;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    auto const g = seed % 2 ? opaque_graph(seed) : random_model(seed);
    auto const a = make_all_graphs(g);
    block_dot_options const all{.title = "a title", .max_boxes = 100000};
    for (auto what : {basic, dataflow, simplified, blocks, kernels}) {
      CAPTURE(name_of(what));
      auto const dot = to_dot(g, a, what, all);
      CHECK(count(dot, "{\n") == count(dot, "}\n"));
      CHECK(dot.find("a title") != dot.npos);
      // Names before " [" are drawn; both ends of each arrow are among them.
      std::set<std::string> drawn, used;
      for (std::size_t from = 0; from < dot.size();) {
        auto const to = dot.find('\n', from);
        std::string line = dot.substr(from, to - from);
        from = to == dot.npos ? dot.size() : to + 1;
        auto const start = line.find_first_not_of(' ');
        auto const bracket = line.find(" [label=") != line.npos ? line.find(" [label=") : line.find(" [shape=");
        if (start == line.npos || bracket == line.npos) continue;
        auto const head = line.substr(start, bracket - start);
        if (auto const arrow = head.find(" -> "); arrow != head.npos)
          used.insert(head.substr(0, arrow)), used.insert(head.substr(arrow + 4));
        else drawn.insert(head);
      }
      for (auto const& name : used) CHECK_MESSAGE(drawn.contains(name), name);
    }
    CHECK(count(to_dot(g, a, basic, all), "\n    o") == g.op_count());
    CHECK(count(to_dot(g, a, dataflow, all), "\n    o") == a.dataflow.nodes.size());
    CHECK(count(to_dot(g, a, simplified, all), "\n    n") == a.simplified.nodes.size());
    CHECK(count(to_dot(g, a, blocks, all), "\n  b") >= a.blocks.blocks.size());
    CHECK(count(to_dot(g, a, kernels, all), "\n    c") == a.kernels.computations.size());
  }
}

TEST_CASE("beyond the boxes asked for, one block of each class; or the one that is asked for") {
  auto const g = random_model(4, 60);
  auto const a = make_all_graphs(g);
  REQUIRE(a.blocks.blocks.size() > 2);
  auto const few = to_dot(g, a, block_drawing::simplified, {.max_boxes = 1});
  CHECK(count(few, "subgraph cluster_block_") == a.classes.size());
  CHECK(few.find("one block of each class") != few.npos);
  auto const one = to_dot(g, a, block_drawing::basic, {.block = 1});
  CHECK(count(one, "subgraph cluster_") == 1);
  auto const& b = a.blocks.blocks[1];
  CHECK(count(one, "\n    o") == b.forward.size() + b.backward.size() + b.updates.size());
  auto const n = a.blocks.blocks.size();
  CHECK(message_of([&] { (void)to_dot(g, a, block_drawing::basic, {.block = static_cast<std::uint32_t>(n)}); }) ==
        "there is no block " + std::to_string(n) + ": the program has " + std::to_string(n) + " blocks, from 0 on");
}
