// The guards of all graphs of one signature, as a trie: a node is a question (an expression of tracked scalars), an edge
// its answer. The next question of a program depends on the earlier answers alone, so a look-up walks one path, however
// many graphs there are. The answers of a question are found by hashing. Look-ups of a call's beginning walk the flat form,
// guard_program.
#pragma once

#include <neap/capture/expression.hpp>
#include <neap/core/number_map.hpp>

#include <cstdint>
#include <source_location>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

struct guard {
  std::uint32_t question = 0;
  std::uint64_t answer = 0;
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
    std::uint32_t question = none, graph = none;
    number_map answers;                                          // bits to nodes
    std::vector<std::pair<std::uint64_t, std::uint32_t>> edges;  // the same, in the order of captures
    std::source_location at{};                                   // where the program asks
  };

  /// The graph whose guards hold. O(questions on its path).
  found find(expression_values& values) const {
    found end;
    for (;;) {
      auto const& n = nodes_[end.at];
      if (n.question == none) {
        end.graph = n.graph;
        return end;
      }
      auto const next = n.answers.find(values(n.question));
      if (next == none) return end;
      end.at = next;
    }
  }
  /// Adds a path. Returns the place in `path` from which it contradicts the trie (another question, or an end, after equal
  /// answers); path.size() + 1 if it was added. A contradiction changes nothing.
  std::size_t add(std::vector<guard> const& path, std::uint32_t graph) {
    std::uint32_t at = 0;
    std::size_t k = 0;
    for (; k < path.size(); ++k) {
      auto const& n = nodes_[at];
      if (n.graph != none || (n.question != none && n.question != path[k].question)) return k;
      if (n.question == none) break;
      auto const next = n.answers.find(path[k].answer);
      if (next == none) break;
      at = next;
    }
    if (k == path.size() && (nodes_[at].question != none || nodes_[at].graph != none)) return k;
    for (; k < path.size(); ++k) {
      nodes_[at].question = path[k].question, nodes_[at].at = path[k].at;
      auto const next = static_cast<std::uint32_t>(nodes_.size());
      nodes_[at].answers.add(path[k].answer, next);
      nodes_[at].edges.emplace_back(path[k].answer, next);
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
      if (n.question != g.question) return none;
      at = n.answers.find(g.answer);
      if (at == none) return none;
    }
    return nodes_[at].question == none ? nodes_[at].graph : none;
  }
  /// Where the program put the question of a node.
  std::source_location place(std::uint32_t k) const { return nodes_[k].at; }

  std::vector<node> const& nodes() const { return nodes_; }

 private:
  std::vector<node> nodes_{1};
};

}}}  // namespace neap::v0::detail
