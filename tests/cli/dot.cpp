#include "../../examples/cli/dot.hpp"

#include "../support/count.hpp"
#include "../support/opaque_graph.hpp"

#include <doctest/doctest.h>

#include <neap/ir/standard_operators.hpp>
#include <neap/schedule/order.hpp>

#include <set>
#include <string>

using namespace neap;
using namespace neap::testing;

TEST_CASE("a box an op, an ellipse a source and a kept value, an edge an argument") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const g = opaque_graph(seed);
    auto const dot = to_dot(g);
    std::size_t arguments = 0, constraints = 0;
    for (auto o : g.ops()) arguments += g.inputs(o).size(), constraints += g.order_after(o).size();
    std::size_t boxes = 0;
    for (auto o : g.ops()) boxes += count(dot, "\n    o" + std::to_string(index(o)) + " [label");
    CHECK(boxes == g.op_count());
    CHECK(count(dot, "label=\"f32") + count(dot, "label=\"bf16") == arguments);
    CHECK(count(dot, "style=dotted") == constraints);
    CHECK(count(dot, "shape=ellipse, label") == g.sources().size());
    CHECK(count(dot, "penwidth=2, label") == g.kept().size());
    CHECK(count(dot, "{") == count(dot, "}"));
    CHECK(dot.find("fwd.") != dot.npos);
  }
}

TEST_CASE("every role has a colour of its own") {
  auto const fill = [](role r) {
    graph_editor edit{operator_table(standard_operators::facets)};
    auto v = edit.add_source(is_source(r) ? r : role::input, {dtype::f32, {4}}, "x");
    edit.keep(edit.add(op::tanh{}, {v})[0], is_source(r) ? role::output : r);
    auto const dot = to_dot(graph(std::move(edit).finish()));
    auto const at = dot.rfind("fillcolor", dot.find("label=\"" + std::string(name_of(r)) + "\""));  // of the legend
    return dot.substr(at, 19);
  };
  std::set<std::string> all;
  for (std::size_t r = 0; r <= static_cast<std::size_t>(role::donated); ++r)
    if (static_cast<role>(r) != role::activation) all.insert(fill(static_cast<role>(r)));
  CHECK(all.size() == static_cast<std::size_t>(role::donated));
  for (auto const& colour : all) CHECK(colour.starts_with("fillcolor=\"#"));
}

TEST_CASE("with a schedule, boxes carry their positions") {
  auto const g = opaque_graph(3);
  auto const order = given_order{}(g);
  auto const dot = to_dot(g, &order);
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(dot.find("label=\"" + std::to_string(i) + ": ") != dot.npos);
}

TEST_CASE("names cannot break out of their quotes") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f32, {4}}, "in\"put\\");
  value_id const in[] = {x};
  output_rule const out[] = {{tensor_layout::dense({dtype::f32, {4}}), alias_kind::fresh, -1, -1}};
  edit.add_opaque("op\"", {}, in, out, "n\x01\"\\\n");
  auto const dot = to_dot(graph(std::move(edit).finish()));
  CHECK(dot.find("input in\\\"put\\\\") != dot.npos);
  CHECK(dot.find('\x01') == dot.npos);
}

TEST_CASE("bytes on every edge, frames for the parts of the step that hold all boxes, a legend of what occurs") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const g = opaque_graph(seed);
    auto const order = given_order{}(g);
    auto const dot = to_dot(g, &order);
    for (auto o : g.ops())
      for (auto v : g.inputs(o))
        CHECK(dot.find(to_string(g.type(v)) + "\n" + readable_bytes(static_cast<double>(g.type(v).bytes())) + "\"") !=
              dot.npos);
    std::size_t framed = 0;
    for (auto const* part : {"forward", "backward", "update"}) {
      auto const at = dot.find("subgraph cluster_" + std::string(part));
      if (at == dot.npos) continue;
      auto const frame = dot.substr(at, dot.find("\n  }\n", at) - at);
      auto const boxes = count(frame, "\n    o");
      CHECK(frame.find(std::string(part) + ": " + detail::counted(boxes, "op")) != frame.npos);
      framed += boxes;
    }
    CHECK(framed == g.op_count());
    CHECK(dot.find("cluster_legend") != dot.npos);
    CHECK(dot.find("computed again") == dot.npos);
    CHECK(dot.find("moved out") == dot.npos);
  }
}

TEST_CASE("copies, stores and loads have looks of their own, in the legend too") {
  graph_editor edit{opaque_graph(4)};
  op_id copied = nothing<op_id>;
  auto const& now = edit.graph();
  for (auto o : now.ops())
    if (flow::is_recomputable(now, o) && !flow::is_view(now, o)) copied = o;
  auto const v = edit.output(copied);
  auto const back = edit.add(op::load{}, {edit.add(op::store{}, {v})[0]})[0];
  edit.keep(back, role::output);
  edit.clone(copied);
  auto const dot = to_dot(graph(std::move(edit).finish()));
  CHECK(count(dot, "\ncomputed again\"") == 1);
  CHECK(count(dot, "store: moved out") == 1);
  CHECK(count(dot, "load: brought in") == 1);
}

TEST_CASE(
    "a large graph: few boxes that hold every op once, edges with what goes between them, and the title says so") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    auto const g = opaque_graph(seed, 800);
    auto const order = given_order{}(g);
    auto const dot = to_dot(g, &order, {.title = "large", .max_boxes = 50});
    auto const boxes = count(dot, "\n    b");
    CHECK(boxes <= 50);
    CHECK(dot.find(std::to_string(g.op_count()) + " ops in " + std::to_string(boxes) + " boxes") != dot.npos);
    std::size_t ops = 0;
    for (auto i = dot.find("\n    b"); i != dot.npos; i = dot.find("\n    b", i + 1)) {
      auto const line = dot.substr(i, dot.find("];", i) - i);
      auto const at = line.find(": ");
      REQUIRE(at != line.npos);
      auto const n = std::atoi(line.c_str() + at + 2);
      ops += n > 0 && line.find(" op", at) != line.npos ? static_cast<std::size_t>(n) : 1;
    }
    CHECK(ops == g.op_count());
    CHECK(dot.size() < 100000);
  }
}
