// What solvers of blocks begin with: a program in an order, as the cut into blocks sees it, and how long its ops take. Made
// once for all solvers of one candidate.
#pragma once

#include <neap/blocks/all_graphs.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/plan/simulation.hpp>

#include <vector>

namespace neap { inline namespace v0 {

struct block_basis {
  std::vector<seconds_t> seconds;  // by op
  basic_program basic;
  simplified_program simplified;
  backward_nodes backward;
  /// Whether there is nothing to cut: no ops that compute, parts, or a backward part without a forward one.
  bool empty() const { return simplified.nodes.empty(); }
};

/// `result`: the simulation of the program in this order. O(ops + edges).
inline block_basis basis_of(op_graph const& g, schedule const& order, simulation const& result,
                            simplify_options const& options = {}) {
  block_basis b;
  if (!g.parts().empty() || (has_backward_end(g) && !has_forward_end(g))) return b;
  b.seconds.resize(g.op_count());
  for (std::size_t p = 0; p < order.size(); ++p) b.seconds[index(order[p])] = result.end[p] - result.start[p];
  b.basic = make_basic(g, order);
  b.simplified = simplify(g, make_dataflow(g, b.basic), options);
  if (!b.empty()) b.backward = find_backward(g, b.basic, b.simplified);
  return b;
}

}}  // namespace neap::v0
