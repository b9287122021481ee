// What ops, tensors and parts of a step are called in pictures.
#pragma once

#include <neap/core/id.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/ir/graph.hpp>
#include <neap/plan/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neap::inline v0 {

/// What an op does: "gelu", or what its operator is called where it comes from, "aten.gelu.default".
inline std::string operator_label(op_graph const& g, op_id o) {
  auto const target = g.target(o);
  return std::string(target.empty() ? g.facets(o).name : target);
}

/// Which part of its origin an op is: " (2 of 8)", counted from 1; empty if it is no part.
inline std::string part_label(op_graph const& g, op_id o) {
  auto const p = g.record(o).part;
  if (p == nothing<part_id>) return {};
  return " (" + std::to_string(g.part(p).number + 1) + " of " + std::to_string(g.part(p).count) + ")";
}

/// What an op is called: its name, or its operator and its number in the graph that was planned, "gelu #12"; and which part
/// of that op it is, where it is one.
inline std::string op_label(op_graph const& g, op_id o) {
  if (!g.name(o).empty()) return std::string(g.name(o)) + part_label(g, o);
  auto const origin = g.origin(o);
  return operator_label(g, o) + " #" + std::to_string(index(origin == nothing<op_id> ? o : origin)) + part_label(g, o);
}

/// What a value is called: its name, or that of the op that makes it (the second result of "split" is "split.1"); what a
/// store or a load makes is called like what they move.
inline std::string value_label(op_graph const& g, value_id v) {
  auto const p = g.producer(v);
  if (p != nothing<op_id> && (g.as<op::store>(p) || g.as<op::load>(p))) return value_label(g, g.inputs(p)[0]);
  if (!g.name(v).empty()) return std::string(g.name(v));
  if (p == nothing<op_id>) return std::string(name_of(g.role(v))) + "." + std::to_string(index(v));
  auto const k = index(v) - index(g.output(p));
  return op_label(g, p) + (k ? "." + std::to_string(k) : "");
}

/// The parts of a training step: `forward` leads to the loss (or, where there is none, to the outputs) or to no gradient
/// at all, like running statistics; `update` writes weights and states, or goes on from what such an op makes beside them;
/// the rest is `backward`.
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
        update |= parts[p] == step_part::update && !trains(v);
      }
      parts[o] = update ? step_part::update : backward ? step_part::backward : step_part::forward;
    }
    now = parts[o];
  }
  return parts;
}

/// Ops that compute again what an earlier op of the schedule has computed: later ones of one origin, and of the same part
/// of it. Views compute nothing. O(ops).
inline table<op_id, std::uint8_t> recomputed_ops(op_graph const& g, schedule const& order) {
  table<op_id, std::uint8_t> again(g.op_count(), 0);
  auto const parts = g.parts().size() + 1;
  std::vector<bool> seen(g.origin_count() * parts);
  for (auto o : order) {
    auto const part = g.record(o).part;
    auto const from = index(g.origin(o)) * parts + (part == nothing<part_id> ? 0 : index(part) + 1);
    if (flow::stream(g, o) != op_stream::compute || from >= seen.size()) continue;
    again[o] = seen[from] && !flow::is_view(g, o);
    seen[from] = true;
  }
  return again;
}

}  // namespace neap::inline v0
