// What a graph file gives: the graph, the order its ops came in, and its name.
#pragma once

#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/plan/schedule.hpp>

#include <string>
#include <utility>

namespace neap { inline namespace v0 { namespace io {

struct imported_graph {
  graph program;
  schedule order;  // as the file has it; topological
  std::string name;
  std::string format;  // "neap-graph" or "magis"
};

namespace detail {
/// The graph of an editor, its ops in the order in which they were added.
inline imported_graph imported(graph_editor&& edit, char const* format) {
  imported_graph out;
  out.program = graph(std::move(edit).finish());
  for (auto o : out.program.ops()) out.order.order.push_back(o);
  out.format = format;
  return out;
}
}  // namespace detail

}}}  // namespace neap::v0::io
