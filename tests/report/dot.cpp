#include <neap/report/dot.hpp>

#include "../support/opaque_graph.hpp"

#include <doctest/doctest.h>

#include <neap/schedule/order.hpp>

using namespace neap;
using namespace neap::testing;

namespace {

std::size_t count(std::string const& text, std::string const& what) {
  std::size_t n = 0;
  for (auto i = text.find(what); i != text.npos; i = text.find(what, i + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("a box an op, an ellipse a source and a kept value, an edge an argument") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const g = opaque_graph(seed);
    auto const dot = to_dot(g);
    std::size_t arguments = 0, constraints = 0;
    for (auto o : g.ops()) arguments += g.inputs(o).size(), constraints += g.order_after(o).size();
    std::size_t boxes = 0;
    for (auto o : g.ops()) boxes += count(dot, "\n  o" + std::to_string(index(o)) + " [label");
    CHECK(boxes == g.op_count());
    CHECK(count(dot, "label=\"f32") + count(dot, "label=\"bf16") == arguments);
    CHECK(count(dot, "style=dotted") == constraints);
    CHECK(count(dot, "shape=ellipse, label") == g.sources().size());
    CHECK(count(dot, "style=bold") == g.kept().size());
    CHECK(count(dot, "{") == 1);
    CHECK(count(dot, "}") == 1);
    CHECK(dot.find("fwd.") != dot.npos);
  }
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
