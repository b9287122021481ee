// What ops and tensors are called in pictures.
#pragma once

#include <neap/core/id.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/ir/graph.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/plan/step_parts.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

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
  if (p != nothing<op_id> && (g.as<op::store>(p) || g.as<op::load>(p) || g.as<op::wait>(p)))
    return value_label(g, g.inputs(p)[0]);
  if (!g.name(v).empty()) return std::string(g.name(v));
  if (p == nothing<op_id>) return std::string(name_of(g.role(v))) + "." + std::to_string(index(v));
  auto const k = index(v) - index(g.output(p));
  return op_label(g, p) + (k ? "." + std::to_string(k) : "");
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

}}  // namespace neap::v0
