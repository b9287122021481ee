// The guards of all graphs of one signature, as a trie: a node is an expression of tracked scalars, an edge its value.
// The next expression of a program depends on the earlier values alone, so a look-up walks one path, however many
// graphs there are. The values of an expression are found by hashing. Look-ups of a call's beginning walk the flat
// form, guard_program.
#pragma once

#include <neap/capture/expression.hpp>
#include <neap/core/number_map.hpp>

#include <cstdint>
#include <source_location>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

struct guard {
  std::uint32_t expr = 0;
  std::uint64_t value = 0;
  std::source_location at{};
};

class guard_trie {
 public:
  static constexpr std::uint32_t none = number_map::none;
  struct found {
    std::uint32_t graph = none;
    std::uint32_t at = 0;  // the node where the walk ended
  };
  struct node {
    std::uint32_t expr = none, graph = none;
    number_map values;                                           // to nodes
    std::vector<std::pair<std::uint64_t, std::uint32_t>> edges;  // the same, in the order of captures
    std::source_location at{};                                   // in the program
  };

  /// The graph whose guards hold. O(expressions on its path).
  found find(expression_values& values) const {
    found end;
    for (;;) {
      auto const& n = nodes_[end.at];
      if (n.expr == none) {
        end.graph = n.graph;
        return end;
      }
      auto const next = n.values.find(values(n.expr));
      if (next == none) return end;
      end.at = next;
    }
  }
  /// Adds a path. Returns the place in `path` from which it contradicts the trie (another expression, or an end, after
  /// equal values); path.size() + 1 if it was added. A contradiction changes nothing.
  std::size_t add(std::vector<guard> const& path, std::uint32_t graph) {
    std::uint32_t at = 0;
    std::size_t k = 0;
    for (; k < path.size(); ++k) {
      auto const& n = nodes_[at];
      if (n.graph != none || (n.expr != none && n.expr != path[k].expr)) return k;
      if (n.expr == none) break;
      auto const next = n.values.find(path[k].value);
      if (next == none) break;
      at = next;
    }
    if (k == path.size() && (nodes_[at].expr != none || nodes_[at].graph != none)) return k;
    for (; k < path.size(); ++k) {
      nodes_[at].expr = path[k].expr, nodes_[at].at = path[k].at;
      auto const next = static_cast<std::uint32_t>(nodes_.size());
      nodes_[at].values.add(path[k].value, next);
      nodes_[at].edges.emplace_back(path[k].value, next);
      nodes_.emplace_back();
      at = next;
    }
    nodes_[at].graph = graph;
    return path.size() + 1;
  }
  /// The graph of exactly these guards.
  std::uint32_t known(std::vector<guard> const& path) const {
    std::uint32_t at = 0;
    for (auto const& g : path) {
      auto const& n = nodes_[at];
      if (n.expr != g.expr) return none;
      at = n.values.find(g.value);
      if (at == none) return none;
    }
    return nodes_[at].expr == none ? nodes_[at].graph : none;
  }
  /// Where the program put the expression of a node.
  std::source_location place(std::uint32_t k) const { return nodes_[k].at; }

  std::vector<node> const& nodes() const { return nodes_; }

 private:
  std::vector<node> nodes_{1};
};

}}}  // namespace neap::v0::detail
