// Walks over the ops of any dataflow graph: orders, cycles, ancestors and descendants, depth. Everything here is
// O(ops + edges) and deterministic: equal graphs give equal answers.
//
// An edge a -> b says that b cannot run before a. Data edges lead from the producer of a value to its readers; order
// edges (flow::order_after) from the readers of a storage to the op that overwrites it.
#pragma once

#include <neap/core/bit_set.hpp>
#include <neap/core/csr.hpp>
#include <neap/ir/dataflow.hpp>

#include <algorithm>
#include <vector>

namespace neap { inline namespace v0 {

/// Calls f(p) with each op that must run before o: producers of its inputs in order of the arguments, then order_after.
/// An op that makes two of the arguments comes twice.
template <dataflow_graph G, class F>
void for_each_before(G const& g, table<value_id, op_id> const& producers, op_id o, F&& f) {
  for (auto v : flow::inputs(g, o))
    if (auto const p = producers[v]; p != nothing<op_id>) f(p);
  for (auto p : flow::order_after(g, o)) f(p);
}

/// The edges between ops, both ways. Pairs with several edges between them are listed once an edge.
struct op_edges {
  csr<op_id, op_id> before;  // of each op: who must run before it
  csr<op_id, op_id> after;   // of each op: who must run after it, by ascending id

  std::size_t op_count() const { return before.row_count(); }
  /// The same graph with all arrows turned round.
  op_edges reversed() const& { return {after, before}; }
  op_edges reversed() && { return {std::move(after), std::move(before)}; }
};

/// Data and order edges: what a schedule must meet.
template <dataflow_graph G>
op_edges all_edges(G const& g) {
  auto const n = flow::op_count(g);
  auto const producers = flow::producers(g);
  auto const walk = [&](auto&& pair) {
    for (auto o : id_range<op_id>(n)) {
      for (auto v : flow::inputs(g, o))
        if (auto const p = producers[v]; p != nothing<op_id>) pair(o, p);
      for (auto p : flow::order_after(g, o)) pair(o, p);
    }
  };
  op_edges e;
  e.before.build(n, walk);
  e.after.build(n, [&](auto&& pair) { walk([&](op_id o, op_id p) { pair(p, o); }); });
  return e;
}

// ---------------------------------------------------------------------------------------------- orders

/// Breadth first: ops whose predecessors have all run, first come first served, sources by ascending id (Kahn 1962).
/// Ops on a cycle, or behind one, are left out.
std::vector<op_id> kahn_order(op_edges const& e);
template <dataflow_graph G>
std::vector<op_id> kahn_order(G const& g) {
  return kahn_order(all_edges(g));
}

/// The order of ids as far as the edges allow: each op as early as its turn, after all that must run before it. (The
/// post-order of a depth-first walk against the edges.) On a cyclic graph the result is some order of all ops.
template <dataflow_graph G>
std::vector<op_id> topological_order(G const& g) {
  auto const n = flow::op_count(g);
  auto const producers = flow::producers(g);
  std::vector<unsigned char> state(n);  // 0: not met, 1: on the stack, 2: in the order
  std::vector<op_id> order, stack;
  order.reserve(n);
  for (auto root : id_range<op_id>(n)) {
    stack.push_back(root);
    while (!stack.empty()) {
      op_id const o = stack.back();
      auto& s = state[index(o)];
      if (s == 0) {
        s = 1;
        auto const bottom = stack.size();
        for_each_before(g, producers, o, [&](op_id p) {
          if (!state[index(p)]) stack.push_back(p);
        });
        std::reverse(stack.begin() + static_cast<std::ptrdiff_t>(bottom), stack.end());
      } else {
        if (s == 1) s = 2, order.push_back(o);
        stack.pop_back();
      }
    }
  }
  return order;
}

/// Reverse post-order of a depth-first walk along the edges: after an op come first the ops that only it was waited
/// for, so that chains stay together. Sources and successors are taken by ascending id. On a cyclic graph the result is
/// some order of all ops. (schedule/order.hpp has the same order as a scheduler.)
std::vector<op_id> depth_first_order(op_edges const& e);
template <dataflow_graph G>
std::vector<op_id> depth_first_order(G const& g) {
  return depth_first_order(all_edges(g));
}

/// Every op once, after all that must run before it.
template <dataflow_graph G>
bool is_topological(G const& g, std::span<op_id const> order) {
  auto const n = flow::op_count(g);
  if (order.size() != n) return false;
  std::vector<std::size_t> position(n, n);
  for (std::size_t i = 0; i < n; ++i) {
    if (index(order[i]) >= n || position[index(order[i])] != n) return false;
    position[index(order[i])] = i;
  }
  auto const producers = flow::producers(g);
  bool good = true;
  for (auto o : id_range<op_id>(n))
    for_each_before(g, producers, o, [&](op_id p) { good = good && position[index(p)] < position[index(o)]; });
  return good;
}

// ---------------------------------------------------------------------------------------------- cycles

/// Ops that wait for each other: each must run before the next, the last before the first. Empty: there is an order.
std::vector<op_id> find_cycle(op_edges const& e);
template <dataflow_graph G>
std::vector<op_id> find_cycle(G const& g) {
  return find_cycle(all_edges(g));
}
/// There is an order that meets all data and order edges.
template <dataflow_graph G>
bool is_acyclic(G const& g) {
  auto const e = all_edges(g);
  return kahn_order(e).size() == e.op_count();
}

// ---------------------------------------------------------------------------------------------- cones

/// All ops that must run before o, as ids; o is among them only on a cycle.
bit_set ancestors(op_edges const& e, op_id o);
/// All ops that must run after o.
bit_set descendants(op_edges const& e, op_id o);
template <dataflow_graph G>
bit_set ancestors(G const& g, op_id o) {
  return ancestors(all_edges(g), o);
}
template <dataflow_graph G>
bit_set descendants(G const& g, op_id o) {
  return descendants(all_edges(g), o);
}

/// The ancestors of every op: O(ops * (ops + edges) / 64) time, ops^2 / 8 bytes. The graph must be acyclic.
table<op_id, bit_set> all_ancestors(op_edges const& e);

/// The number of ops on the longest way that ends before each op: 0 for those that wait for none. The graph must be
/// acyclic.
table<op_id, std::uint32_t> depths(op_edges const& e);
template <dataflow_graph G>
table<op_id, std::uint32_t> depths(G const& g) {
  return depths(all_edges(g));
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/traversal.ipp>
#endif
