// expect: neap: this leaf of a pipeline is not a mutator: it lacks  auto operator()(neap::candidate const&) const
#include "engine.hpp"

namespace engine {
struct mine {  // takes the engine's own graph, which the search does not edit
  auto operator()(chain const& c) const;
};
}  // namespace engine

auto const found = [] { return neap::optimize(engine::chain{}, engine::mine{}, neap::memory_limit(100)), 0; }();
