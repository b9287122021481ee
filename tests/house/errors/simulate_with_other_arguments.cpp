// expect: neap: graph_traits of this graph takes other arguments than  static bool is_resident(G const&, neap::storage_id)
#include <neap/simulate/simulator.hpp>

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
  static std::vector<bool> is_resident(engine::graph const&) { return {}; }
};

auto const seen = neap::simulate(engine::graph{}, {}, neap::no_cost{});
