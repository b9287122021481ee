// expect: neap: what this mutator yields is no mutation of an external graph's image, a regular type with  std::optional<neap::edited<neap::external_graph>> apply(neap::candidate<neap::external_graph> const&) const
#include "engine.hpp"

namespace engine {
struct move {
  friend bool operator==(move const&, move const&) = default;
  template <class G>
  neap::edited<G> apply(neap::candidate<G> const&) const;
  template <class G>
  std::string describe(neap::candidate<G> const&) const;
};
struct moves {
  struct stream {
    std::optional<move> next();
  };
  template <class G>
  stream operator()(neap::candidate<G> const&) const;
};
}  // namespace engine

auto const found = [] { return neap::optimize(engine::chain{}, engine::moves{}, neap::memory_limit(100)), 0; }();
