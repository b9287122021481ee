// expect: neap: filter takes a predicate  bool(Mutation const&, neap::candidate const&)  of what the mutator before it yields
#include "engine.hpp"

#include <neap/mutate/filter.hpp>

auto const found = [] {
  auto const moves = neap::rematerialize{} | neap::filter([](auto const&) { return true; });
  return neap::optimize(engine::chain{}, moves, neap::memory_limit(100)), 0;
}();
