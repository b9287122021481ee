// A graph for Graphviz: ops as boxes, values as edges with their types, order constraints dotted, updates in red. With a
// schedule, boxes carry their positions.
#pragma once

#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/plan/schedule.hpp>

#include <string>

namespace neap::inline v0 {

/// O(ops + edges).
inline std::string to_dot(op_graph const& g, schedule const* order = nullptr) {
  auto const quoted = [](std::string_view s) {
    std::string q = "\"";
    for (char c : s) {
      if (c == '"' || c == '\\') q += '\\';
      q += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
    return q + "\"";
  };
  table<op_id, std::uint32_t> at;
  if (order) at = positions(*order);
  std::string s =
      "digraph neap {\n  node [shape=box, fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\", fontsize=10];\n";
  for (auto v : g.sources()) {
    std::string label = std::string(name_of(g.role(v)));
    if (!g.name(v).empty()) label += " " + std::string(g.name(v));
    s += "  v" + std::to_string(index(v)) + " [shape=ellipse, label=" + quoted(label + "\n" + to_string(g.type(v))) +
         "];\n";
  }
  for (auto o : g.ops()) {
    std::string label(g.facets(o).name);
    if (auto const* x = g.as<op::opaque>(o)) label = std::string(g.text(x->target));
    if (order) label = std::to_string(at[o]) + ": " + label;
    if (!g.name(o).empty()) label += "\n" + std::string(g.name(o));
    bool updates = false;
    for (auto v : g.outputs(o)) updates |= g.record(v).alias == alias_kind::update;
    char const* const color = g.origin(o) != o && index(g.origin(o)) < g.op_count()
                                  ? ", style=filled, fillcolor=\"#fdf0d5\""
                              : g.as<op::store>(o) || g.as<op::load>(o) ? ", style=filled, fillcolor=\"#d8e8f5\""
                              : updates                                 ? ", color=\"#c0392b\""
                                                                        : "";
    s += "  o" + std::to_string(index(o)) + " [label=" + quoted(label) + color + "];\n";
  }
  for (auto o : g.ops()) {
    for (auto v : g.inputs(o)) {
      auto const p = g.producer(v);
      s += "  " + (p == nothing<op_id> ? "v" + std::to_string(index(v)) : "o" + std::to_string(index(p))) + " -> o" +
           std::to_string(index(o)) + " [label=" + quoted(to_string(g.type(v))) + "];\n";
    }
    for (auto before : g.order_after(o))
      s += "  o" + std::to_string(index(before)) + " -> o" + std::to_string(index(o)) +
           " [style=dotted, constraint=false];\n";
  }
  for (auto v : g.kept()) {
    auto const p = g.producer(v);
    std::string const name = "k" + std::to_string(index(v));
    s += "  " + name + " [shape=ellipse, style=bold, label=" + quoted(name_of(g.role(v))) + "];\n";
    if (p != nothing<op_id>) s += "  o" + std::to_string(index(p)) + " -> " + name + ";\n";
  }
  return s + "}\n";
}

}  // namespace neap::inline v0
