// expect: neap: from_range takes a function of a  neap::candidate const&  that gives a range of mutations, with begin() and end()
#include "engine.hpp"

#include <neap/mutate/from_range.hpp>

auto const found = [] {
  auto const moves = neap::from_range([](auto const&) { return 5; });
  return neap::optimize(engine::chain{}, moves, neap::memory_limit(100)), 0;
}();
