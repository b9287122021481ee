// Narrow places of a graph. An articulation point is an op without which the ops next to it fall apart, arrows ignored
// (Hopcroft and Tarjan 1973); a waist is an op that is comparable with every other one: each runs before it or after it
// in every schedule, so that the order before it and the order behind it can be chosen apart.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/ir/traversal.hpp>

#include <algorithm>
#include <vector>

namespace neap::inline v0 {

/// Articulation points of the undirected graph of e's edges, by ascending id. O(ops + edges), without recursion.
inline std::vector<op_id> articulation_points(op_edges const& e) {
  auto const n = e.op_count();
  struct frame {
    op_id op, from;      // the op and the one it was met from
    std::uint32_t next;  // neighbour to walk next: those before, then those after
  };
  std::vector<std::uint32_t> found(n, 0), low(n);  // found: when an op was met, from 1; low: the earliest met behind it
  std::vector<unsigned char> cut(n);
  std::vector<frame> stack;
  std::uint32_t clock = 0;
  for (auto root : id_range<op_id>(n)) {
    if (found[index(root)]) continue;
    std::uint32_t root_children = 0;
    found[index(root)] = low[index(root)] = ++clock;
    stack.push_back({root, nothing<op_id>, 0});
    while (!stack.empty()) {
      auto& [o, from, next] = stack.back();
      auto const before = e.before[o], after = e.after[o];
      if (next < before.size() + after.size()) {
        auto const to = next < before.size() ? before[next] : after[next - before.size()];
        ++next;
        if (to == from || to == o) continue;
        if (found[index(to)]) {
          low[index(o)] = std::min(low[index(o)], found[index(to)]);
          continue;
        }
        found[index(to)] = low[index(to)] = ++clock;
        stack.push_back({to, o, 0});
        continue;
      }
      auto const child = o, parent = from;
      stack.pop_back();
      if (parent == nothing<op_id>) continue;
      low[index(parent)] = std::min(low[index(parent)], low[index(child)]);
      if (parent == root) ++root_children;
      else if (low[index(child)] >= found[index(parent)]) cut[index(parent)] = 1;
    }
    if (root_children > 1) cut[index(root)] = 1;
  }
  std::vector<op_id> points;
  for (auto o : id_range<op_id>(n))
    if (cut[index(o)]) points.push_back(o);
  return points;
}
/// Articulation points along data edges.
template <dataflow_graph G>
std::vector<op_id> articulation_points(G const& g) {
  return articulation_points(data_edges(g));
}

namespace detail {
/// For each op: how many ops a breadth-first order runs before it, or n if some op behind it does not depend on it. An
/// op that is alone in the queue when its turn comes is an ancestor of all that is left.
inline std::vector<std::size_t> lone_positions(op_edges const& e) {
  auto const n = e.op_count();
  std::vector<std::size_t> alone(n, n);
  std::vector<std::uint32_t> missing(n);
  std::vector<op_id> queue;
  queue.reserve(n);
  for (auto o : id_range<op_id>(n)) {
    missing[index(o)] = static_cast<std::uint32_t>(e.before[o].size());
    if (!missing[index(o)]) queue.push_back(o);
  }
  for (std::size_t at = 0; at < queue.size(); ++at) {
    if (queue.size() == at + 1) alone[index(queue[at])] = at;
    for (auto o : e.after[queue[at]])
      if (--missing[index(o)] == 0) queue.push_back(o);
  }
  return alone;
}
}  // namespace detail

/// The waists of an acyclic graph, in the order in which every schedule runs them. O(ops + edges).
inline std::vector<op_id> waists(op_edges const& e) {
  auto const n = e.op_count();
  auto const forward = detail::lone_positions(e), backward = detail::lone_positions(e.reversed());
  // An op behind which all are descendants and before which all are ancestors; if the two counts fill the graph, no op
  // was counted as neither.
  std::vector<op_id> found;
  for (auto o : id_range<op_id>(n))
    if (forward[index(o)] < n && backward[index(o)] < n && forward[index(o)] + backward[index(o)] == n - 1)
      found.push_back(o);
  detail::sort_list(found, [&](op_id a, op_id b) { return forward[index(a)] < forward[index(b)]; });
  return found;
}
/// Waists under data and order edges.
template <dataflow_graph G>
std::vector<op_id> waists(G const& g) {
  return waists(all_edges(g));
}

}  // namespace neap::inline v0
