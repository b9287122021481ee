// A graph that somebody else owns, adapted.
#pragma once

#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>

#include <array>

namespace engine {
struct chain {  // op i makes value i from value i - 1
  std::size_t length = 4;
};
}  // namespace engine

template <>
struct neap::graph_traits<engine::chain> {
  using G = engine::chain;
  static std::size_t op_count(G const& g) { return g.length; }
  static std::size_t value_count(G const& g) { return g.length; }
  static std::size_t storage_count(G const& g) { return g.length; }
  static auto inputs(G const&, op_id o) { return std::vector<value_id>(index(o) ? 1 : 0, value_id{index(o) - 1}); }
  static auto outputs(G const&, op_id o) { return std::array{id_at<value_id>(index(o))}; }
  static storage_id storage(G const&, value_id v) { return id_at<storage_id>(index(v)); }
  static bytes_t bytes(G const&, storage_id) { return 64; }
};
