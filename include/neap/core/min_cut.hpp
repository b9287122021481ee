// The cheapest cut of a network of directed edges with capacities, by Dinic's algorithm (1970): shortest augmenting paths,
// a blocking flow at a time.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/work_meter.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace neap::inline v0 {

/// A network with nodes 0 to n - 1. Capacities are whole numbers, their sum over the cut below 2^63; `unlimited` is never
/// cut. O(nodes^2 * edges) at worst; where paths from source to sink are short, about O(edges) a length.
class min_cut {
 public:
  static constexpr std::int64_t unlimited = std::int64_t{1} << 60;

  explicit min_cut(std::size_t nodes) : head_(nodes, none) {}

  void add_edge(std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
    link(from, to, capacity);
    link(to, from, 0);
  }

  /// Finds the least cut between two nodes; afterwards has_source() says on which side each node lies. Of several least
  /// cuts the one with the fewest nodes at the source's side.
  NEAP_ONCE void cut(std::uint32_t source, std::uint32_t sink) {
    while (find_levels(source, sink)) {
      at_ = head_;
      block(source, sink);
      work_meter::add(4 * edges_.size());
    }
  }
  bool has_source(std::uint32_t node) const { return level_[node] != none; }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct edge {
    std::uint32_t to, next;
    std::int64_t left;  // of the capacity; the edge beside it (index ^ 1) goes back
  };

  void link(std::uint32_t from, std::uint32_t to, std::int64_t capacity) {
    edges_.push_back({to, head_[from], capacity});
    head_[from] = static_cast<std::uint32_t>(edges_.size() - 1);
  }

  /// How many edges away from the source each node is; whether the sink can be reached.
  NEAP_ONCE bool find_levels(std::uint32_t source, std::uint32_t sink) {
    level_.assign(head_.size(), none);
    queue_.clear();
    level_[source] = 0;
    queue_.push_back(source);
    for (std::size_t i = 0; i < queue_.size(); ++i)
      for (auto e = head_[queue_[i]]; e != none; e = edges_[e].next)
        if (edges_[e].left > 0 && level_[edges_[e].to] == none) {
          level_[edges_[e].to] = level_[queue_[i]] + 1;
          queue_.push_back(edges_[e].to);
        }
    return level_[sink] != none;
  }

  /// Flow along shortest paths until none is left. A path is kept as its edges: networks may be as deep as a model.
  NEAP_ONCE void block(std::uint32_t source, std::uint32_t sink) {
    path_.clear();
    auto node = source;
    for (;;) {
      if (node == sink) {
        std::int64_t least = INT64_MAX;
        for (auto e : path_) least = std::min(least, edges_[e].left);
        std::size_t keep = path_.size();
        for (std::size_t i = path_.size(); i-- > 0;) {
          edges_[path_[i]].left -= least, edges_[path_[i] ^ 1].left += least;
          if (edges_[path_[i]].left == 0) keep = i;
        }
        node = edges_[path_[keep] ^ 1].to;
        path_.resize(keep);
        continue;
      }
      auto& e = at_[node];
      while (e != none && (edges_[e].left == 0 || level_[edges_[e].to] != level_[node] + 1)) e = edges_[e].next;
      if (e != none) {
        path_.push_back(e);
        node = edges_[e].to;
      } else {
        if (path_.empty()) return;
        level_[node] = none - 1;  // a dead end
        node = edges_[path_.back() ^ 1].to;
        path_.resize(path_.size() - 1);
      }
    }
  }

  plain_vector<edge> edges_;
  plain_vector<std::uint32_t> head_, at_, level_, queue_, path_;
};

}  // namespace neap::inline v0
