// What a graph file gives: the graph, the order its ops came in, and its name.
#pragma once

#include <neap/ir/standard_operators.hpp>
#include <neap/plan/schedule.hpp>

#include <string>
#include <vector>

namespace neap { inline namespace v0 { namespace io {

struct imported_graph {
  graph program;
  schedule order;  // as the file has it; topological
  std::string name;
  std::string format;  // "neap-graph" or "magis"
};

}}}  // namespace neap::v0::io
