// A candidate: a graph, an order of its ops, and what a simulator says of both. Mutators read candidates.
#pragma once

#include <neap/plan/schedule.hpp>
#include <neap/plan/simulation.hpp>

namespace neap::inline v0 {

template <class G>
struct candidate {
  G graph;
  schedule order;
  simulation result;
};

}  // namespace neap::inline v0
