// What the ops of a graph read and write, for comparisons of fused graphs.
#pragma once

#include <neap/ir/dataflow.hpp>
#include <neap/ir/standard_operators.hpp>

#include <vector>

namespace neap::testing {

/// Bytes that the ops read and write by their cost, views left out.
inline double bytes_moved(op_graph const& g) {
  double n = 0;
  for (auto o : g.ops()) {
    if (flow::is_view(g, o)) continue;
    std::vector<tensor_layout> in, out;
    for (auto v : g.inputs(o)) in.push_back(g.layout(v));
    for (auto v : g.outputs(o)) out.push_back(g.layout(v));
    auto const w = g.facets(o).cost(g.attributes(o), {in, out});
    n += w.read + w.written;
  }
  return n;
}

}  // namespace neap::testing
