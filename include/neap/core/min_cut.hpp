// The cheapest cut of a network of directed edges with capacities, by Dinic's algorithm (1970): shortest augmenting paths,
// a blocking flow at a time.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/work_meter.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

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
  void cut(std::uint32_t source, std::uint32_t sink);
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
  bool find_levels(std::uint32_t source, std::uint32_t sink);

  /// Flow along shortest paths until none is left. A path is kept as its edges: networks may be as deep as a model.
  void block(std::uint32_t source, std::uint32_t sink);

  plain_vector<edge> edges_;
  plain_vector<std::uint32_t> head_, at_, level_, queue_, path_;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/core/impl/min_cut.ipp>
#endif
