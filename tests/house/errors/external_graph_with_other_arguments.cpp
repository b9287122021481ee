// expect: neap: graph_traits of this graph takes other arguments than  static bool is_recomputable(G const&, neap::op_id)
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>

#include <vector>

namespace engine {
struct graph {};
}  // namespace engine

template <>
struct neap::graph_traits<engine::graph> {
  static std::size_t op_count(engine::graph const&) { return 0; }
  static std::size_t value_count(engine::graph const&) { return 0; }
  static std::size_t storage_count(engine::graph const&) { return 0; }
  static std::vector<value_id> inputs(engine::graph const&, op_id) { return {}; }
  static std::vector<value_id> outputs(engine::graph const&, op_id) { return {}; }
  static storage_id storage(engine::graph const&, value_id) { return {}; }
  static bytes_t bytes(engine::graph const&, storage_id) { return 0; }
  static bool is_recomputable(engine::graph const&, std::uint32_t) { return true; }
};

auto const found = [] { return neap::optimize(engine::graph{}, neap::rematerialize{}, neap::memory_limit(100)), 0; }();
