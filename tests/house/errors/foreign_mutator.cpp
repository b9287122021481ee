// expect: neap: a mutator of a foreign graph works on its image: it lacks  auto operator()(neap::candidate<neap::foreign_graph> const&) const
#include "engine.hpp"

namespace engine {
struct mine {  // takes the engine's own graph, which the search does not edit
  auto operator()(neap::candidate<chain> const& c) const;
};
}  // namespace engine

auto const found = [] { return neap::optimize(engine::chain{}, engine::mine{}, neap::memory_limit(100)), 0; }();
