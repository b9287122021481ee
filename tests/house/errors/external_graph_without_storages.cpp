// expect: neap: graph_traits of this graph lacks one of  static neap::storage_id storage(G const&, neap::value_id)
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
};

auto const found = [] { return neap::optimize(engine::graph{}, neap::rematerialize{}, neap::memory_limit(100)), 0; }();
