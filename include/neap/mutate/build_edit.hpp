// A graph_edit as a graph: what is dead in it is left out, and the rest is built. All edits that are data come by here.
//
//   graph_edit what;                                 // a mutation writes it
//   remove_dead(g, what, maybe_dead);                // ops that it leaves without a reader
//   auto const e = build(g, order, what);            // the edited graph and its order
#pragma once

#include <neap/ir/graph.hpp>
#include <neap/plan/graph_edit.hpp>
#include <neap/plan/schedule.hpp>

#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// What an edit gives: the edited graph and a valid order of its ops.
struct edited {
  op_graph graph;
  schedule order;
};

namespace detail {

/// Removes dead ops: from these on, the last one first, back to what only they read. `graph` knows which ops it needs:
/// is_dead(op), is_needed(op), and remove(op, stack), which appends the makers of what the op has read.
template <class Graph>
void remove_dead_ops(std::vector<op_id> maybe_dead, Graph&& graph) {
  while (!maybe_dead.empty()) {
    op_id const o = maybe_dead.back();
    maybe_dead.pop_back();
    if (!graph.is_dead(o) && !graph.is_needed(o)) graph.remove(o, maybe_dead);
  }
}

/// An order without dead ops, by the numbers that the others have without them.
void drop_ops(schedule& order, std::vector<bool> const& dead);

/// Whether a pin keeps a dead op in the graph: run_once and keep do, others where no other op of its origin stays.
/// `stays_elsewhere()` is only called for the others.
template <class StaysElsewhere>
bool is_pinned_to_stay(op_graph const& g, op_id o, StaysElsewhere const& stays_elsewhere) {
  if (g.may_replace(o)) return false;
  return !g.may_recompute(o) || !stays_elsewhere();
}

}  // namespace detail

/// Leaves out what an edit makes dead: from these ops on (new ones are numbered behind the graph's), the last one first,
/// back to what only they read. New ops that are dead are not run. Kept values, updates, ops without results and what pins
/// keep stay. O(what the edit names), and what is looked at.
void remove_dead(op_graph const& g, graph_edit& edit, std::vector<op_id> maybe_dead);

namespace detail {
/// The edited graph; its order is written to `edited_order`.
op_graph build_edit(op_graph const& g, schedule const& order, graph_edit const& what, schedule& edited_order);
}  // namespace detail

/// The graph and its order as an edit of them says. Throws neap::error where the edit names what is not there, or copies an
/// update. O(ops + edges); where nothing is left out, passes of plain copies and what the edit names.
inline edited build(op_graph const& g, schedule const& order, graph_edit const& what) {
  schedule edited_order;
  op_graph made(detail::build_edit(g, order, what, edited_order));
  return {std::move(made), std::move(edited_order)};
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/build_edit.ipp>
#endif
