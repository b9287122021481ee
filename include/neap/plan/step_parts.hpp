// The parts of a training step, found in its graph: what leads to the loss, what leads to gradients, what writes weights.
#pragma once

#include <neap/ir/dataflow.hpp>
#include <neap/ir/graph.hpp>
#include <neap/plan/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace neap { inline namespace v0 {

/// The parts of a training step: `forward` leads to the loss (or, where there is none, to the outputs) or to no gradient
/// at all, like running statistics; `update` writes weights and states, or goes on from what such an op makes beside them,
/// or reads what it has written and leads to no gradient, like averages of weights; the rest is `backward`.
enum class step_part : std::uint8_t { forward, backward, update };
inline constexpr std::size_t step_part_count = 3;

constexpr std::string_view name_of(step_part p) {
  constexpr std::string_view names[] = {"forward", "backward", "update"};
  return names[static_cast<std::size_t>(p)];
}

/// `order` is a schedule of the graph. A transfer belongs to where it is in it. O(ops + edges).
inline table<op_id, step_part> parts_of(op_graph const& g, schedule const& order) {
  enum : std::uint8_t { to_loss = 1, to_gradient = 2 };
  table<op_id, std::uint8_t> leads(g.op_count(), 0);
  bool loss = false;
  for (auto v : g.kept()) loss |= g.role(v) == role::loss;
  for (auto v : g.kept())
    if (auto const p = g.producer(v); p != nothing<op_id>) {
      if (g.role(v) == (loss ? role::loss : role::output)) leads[p] |= to_loss;
      if (g.role(v) == role::gradient) leads[p] |= to_gradient;
    }
  auto const trains = [&](value_id v) {
    auto const r = g.role(g.record(g.storage(v)).first);
    return r == role::weight || r == role::state;
  };
  table<op_id, std::uint8_t> updates(g.op_count(), 0);
  for (auto o : order)
    for (auto v : g.outputs(o)) updates[o] = updates[o] || (g.record(v).alias == alias_kind::update && trains(v));
  for (std::size_t i = order.size(); i-- > 0;) {
    auto const o = order[i];
    if (updates[o]) leads[o] |= to_gradient;
    for (auto v : g.inputs(o))
      if (auto const p = g.producer(v); p != nothing<op_id>) leads[p] |= leads[o];
  }
  table<op_id, step_part> parts(g.op_count(), step_part::forward);
  step_part now = step_part::forward;
  for (auto o : order) {
    if (flow::stream(g, o) != op_stream::compute) {
      parts[o] = now;
      continue;
    }
    if (!(leads[o] & to_loss)) {
      bool backward = leads[o] & to_gradient, update = updates[o];
      for (auto v : g.inputs(o)) {
        auto const p = g.producer(v);
        if (p == nothing<op_id> || flow::stream(g, p) != op_stream::compute) continue;
        backward |= parts[p] == step_part::backward;
        update |= parts[p] == step_part::update && (!trains(v) || !(leads[o] & to_gradient));
      }
      parts[o] = update ? step_part::update : backward ? step_part::backward : step_part::forward;
    }
    now = parts[o];
  }
  return parts;
}

}}  // namespace neap::v0
