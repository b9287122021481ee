// Dominators: op d dominates op o if every way from the start of the step to o leads through d; post-dominators: every
// way from o to the end. A virtual root stands before all ops that wait for none (behind all ops that none waits for).
// The algorithm of Cooper, Harvey and Kennedy ("A simple, fast dominance algorithm", 2001); on an acyclic graph one
// pass in topological order is enough: O(ops + edges * depth of the tree), in practice a few steps an edge.
#pragma once

#include <neap/ir/traversal.hpp>

#include <vector>

namespace neap::inline v0 {

class dominator_tree {
 public:
  /// The dominators along e's arrows. The graph must be acyclic.
  explicit dominator_tree(op_edges const& e) : parent_(e.op_count(), nothing<op_id>), spans_(e.op_count()) {
    auto const n = e.op_count();
    auto const order = kahn_order(e);
    if (order.size() != n) throw_error({"dominators: the graph has a cycle"});
    std::vector<std::uint32_t> position(n);
    for (std::uint32_t i = 0; i < n; ++i) position[index(order[i])] = i;
    // The nearest common dominator: climb from the later of the two until they meet; nothing is the root.
    auto const meet = [&](op_id a, op_id b) {
      while (a != b) {
        if (a == nothing<op_id> || b == nothing<op_id>) return nothing<op_id>;
        if (position[index(a)] > position[index(b)]) a = parent_[a];
        else b = parent_[b];
      }
      return a;
    };
    for (auto o : order) {
      auto const before = e.before[o];
      if (before.empty()) continue;
      op_id d = before[0];
      for (auto p : before.subspan(1)) d = meet(d, p);
      parent_[o] = d;
    }
    number(order);
  }

  std::size_t op_count() const { return parent_.size(); }
  /// The nearest op that dominates o; nothing<op_id>: only the virtual root does.
  op_id parent(op_id o) const { return parent_[o]; }
  /// a dominates b; every op dominates itself. O(1).
  bool dominates(op_id a, op_id b) const {
    return spans_[a].first <= spans_[b].first && spans_[b].first < spans_[a].last;
  }
  /// a and all it dominates, a first, parents before children.
  std::span<op_id const> dominated_by(op_id a) const {
    return std::span(preorder_).subspan(spans_[a].first, spans_[a].last - spans_[a].first);
  }

 private:
  struct interval {
    std::uint32_t first = 0, last = 0;  // half-open, in preorder_
  };
  void number(std::vector<op_id> const& order) {
    // Sizes of subtrees from the leaves up, then places from the root down: parents come before children in `order`.
    std::vector<std::uint32_t> size(parent_.size(), 1), next(parent_.size());
    for (std::size_t i = order.size(); i-- > 0;)
      if (auto const p = parent_[order[i]]; p != nothing<op_id>) size[index(p)] += size[index(order[i])];
    std::uint32_t top = 0;
    preorder_.resize(order.size());
    for (auto o : order) {
      auto const p = parent_[o];
      auto& at = p == nothing<op_id> ? top : next[index(p)];
      spans_[o] = {at, at + size[index(o)]};
      next[index(o)] = at + 1;
      preorder_[at] = o;
      at += size[index(o)];
    }
  }
  table<op_id, op_id> parent_;
  table<op_id, interval> spans_;
  std::vector<op_id> preorder_;
};

/// Dominators along data edges. (A source value is no op: an op that reads an activation and a weight may be dominated
/// by what makes the activation.)
template <dataflow_graph G>
dominator_tree dominators(G const& g) {
  return dominator_tree(data_edges(g));
}
/// Post-dominators along data edges.
template <dataflow_graph G>
dominator_tree post_dominators(G const& g) {
  return dominator_tree(data_edges(g).reversed());
}

}  // namespace neap::inline v0
