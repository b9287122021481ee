// expect: neap: what this leaf of a pipeline yields is no mutation, a regular type with  std::optional<neap::edited> apply(neap::candidate const&) const
#include "engine.hpp"

namespace engine {
struct move {
  friend bool operator==(move const&, move const&) = default;
  neap::edited apply(neap::candidate const&) const;
  std::string describe(neap::candidate const&) const;
};
struct moves {
  struct stream {
    std::optional<move> next();
  };
  stream operator()(neap::candidate const&) const;
};
}  // namespace engine

auto const found = [] { return neap::optimize(engine::chain{}, engine::moves{}, neap::memory_limit(100)), 0; }();
