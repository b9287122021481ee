// A candidate: a graph, an order of its ops, and what a simulator says of both. Mutators read candidates.
#pragma once

#include <neap/ir/graph.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/plan/simulation.hpp>

#include <cstdint>

namespace neap { inline namespace v0 {

struct candidate {
  op_graph graph;
  schedule order;
  simulation result;
  std::uint32_t visits = 0;  // how often a search has looked at its mutations before
};

}}  // namespace neap::v0
