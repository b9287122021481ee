// expect: neap: a mutator of an external graph works on its image: it lacks  auto operator()(neap::candidate<neap::external_graph> const&) const
#include "engine.hpp"

namespace engine {
struct mine {  // takes the engine's own graph, which the search does not edit
  auto operator()(neap::candidate<chain> const& c) const;
};
}  // namespace engine

auto const found = [] { return neap::optimize(engine::chain{}, engine::mine{}, neap::memory_limit(100)), 0; }();
