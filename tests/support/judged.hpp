// A graph in an order with what a simulator says of it; every op but views takes one second unless a cost is given.
#pragma once

#include <neap/plan/candidate.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/simulator.hpp>

#include <utility>

namespace neap::testing {

struct unit_cost {
  double operator()(op_graph const& g, op_id o) const { return flow::is_view(g, o) ? 0.0 : 1.0; }
};

template <class Cost = unit_cost>
candidate judged(op_graph g, schedule s, Cost const& cost = {}, memory_options const& options = {}) {
  auto r = simulate(g, s, cost, options);
  return {std::move(g), std::move(s), std::move(r)};
}

/// In depth-first order.
template <class Cost = unit_cost>
candidate judged_in_order(op_graph g, Cost const& cost = {}) {
  auto order = reverse_post_order{}(g);
  return judged(std::move(g), std::move(order), cost);
}

}  // namespace neap::testing
