// A graph with much to recompute.
#pragma once

#include "random_graph.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace neap::testing {

/// A chain of `depth` ops whose activations all wait for the way back.
inline toy_graph ladder(int depth) {
  graph_editor e{toy_operators::facets};
  auto x = e.add_source(role::input, {dtype::f32, {64, 64}});
  std::vector<value_id> kept;
  for (int i = 0; i < depth; ++i) {
    kept.push_back(x);
    x = e.add(toy::unary{i}, {x})[0];
  }
  for (int i = depth; i-- > 0;) x = e.add(toy::binary{i}, {x, kept[static_cast<std::size_t>(i)]})[0];
  e.keep(x, role::output);
  return toy_graph(std::move(e).finish());
}

}  // namespace neap::testing
