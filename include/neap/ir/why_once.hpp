// Why an op may not run again. A planner recomputes what its graph allows; where memory stays occupied at the peak because
// an op runs once only, its user needs the reason.
#pragma once

#include <neap/ir/dataflow.hpp>
#include <neap/ir/external.hpp>

#include <string>

namespace neap { inline namespace v0 {

namespace detail {
/// The op by its name, or by its operator and number.
inline std::string op_text(op_graph const& g, op_id o) {
  auto const name = g.name(o);
  if (!name.empty()) return std::string(name);
  auto const* x = g.as<op::external>(o);
  auto const number = x ? static_cast<std::size_t>(x->id) : index(g.origin(o));
  auto const target = g.target(o);
  return std::string(target.empty() ? g.facets(o).name : target) + " " + std::to_string(number);
}
/// Of the op alone, whatever the ops before it may do.
inline std::string why_once_itself(op_graph const& g, op_id o) {
  if (flow::is_recomputable(g, o)) return {};
  for (auto v : g.outputs(o))
    if (g.record(v).alias == alias_kind::update) {
      auto const name = g.name(g.record(g.storage(v)).first);
      return "it writes in place on " + (name.empty() ? std::string("memory") : "\"" + std::string(name) + "\"") +
             (g.is_resident(g.storage(v)) ? ", which outlasts the step" : ", version by version");
    }
  if (flow::stream(g, o) != op_stream::compute) return "it runs on a copy stream";
  if (auto const* x = g.template as<op::external>(o)) {
    if (x->once == op::external::followed) return "another op must follow it (order_after): it has an effect";
    return "graph_traits::is_recomputable is false for it";
  }
  if (auto const* x = g.template as<op::opaque>(o))
    return x->placeholder ? "it stands for a tensor that the caller has" : "it has effects";
  return "its operator does not allow it";
}
}  // namespace detail

/// Why an op may not run again; empty where it may. An op that overwrites its input needs that input made again: what
/// stands in the way of that is its reason, too. O(ops that write on the storage).
inline std::string why_once(op_graph const& g, op_id o) {
  auto reason = detail::why_once_itself(g, o);
  for (auto at = o; reason.empty();) {
    auto base = nothing<value_id>;
    for (auto v : g.outputs(at))
      if (base == nothing<value_id>) base = g.overwrites(v);
    if (base == nothing<value_id>) return {};
    auto const first = g.record(g.storage(base)).first;
    auto const maker = g.producer(first);
    if (maker == nothing<op_id>)
      return "it writes on the donated input \"" + std::string(g.name(first)) + "\", which no op makes";
    if (reason = detail::why_once_itself(g, maker); !reason.empty())
      reason = "it writes on what " + detail::op_text(g, maker) + " makes, which may not run again: " + reason;
    at = maker;
  }
  return reason;
}

}}  // namespace neap::v0
