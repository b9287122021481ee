// expect: neap: what this leaf of a pipeline yields is no mutation, a regular type with  std::optional<neap::edited> apply(neap::candidate const&) const
#include "engine.hpp"

#include <neap/mutate/chain.hpp>

namespace engine {
struct numbers {
  struct stream {
    std::optional<int> next();
  };
  stream operator()(neap::candidate const&) const;
};
}  // namespace engine

auto const found = [] {
  return neap::optimize(engine::chain{}, neap::chain(neap::rematerialize{}, engine::numbers{}), neap::memory_limit(1)),
         0;
}();
