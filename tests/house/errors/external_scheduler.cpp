// expect: neap: this scheduler takes the external graph, and cannot order what a search makes of it
#include "engine.hpp"

namespace engine {
struct mine {
  neap::schedule operator()(chain const& g) const;
};
}  // namespace engine

auto const found = neap::optimize(engine::chain{}, neap::rematerialize{}, engine::mine{});
