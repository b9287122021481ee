// The bodies of <neap/optimize/held_at_peak.hpp>.
#pragma once

#include <neap/optimize/held_at_peak.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::string why_not_again(op_graph const& g, op_id o) {
  if (auto const pins = g.pins(o) & (pin::keep | pin::run_once); !pins.empty()) return to_string(pins);
  for (auto v : g.outputs(o))
    if (g.record(v).alias == alias_kind::update) return "it writes in place";
  if (auto const* x = g.as<op::opaque>(o); x && !x->pure) return "it has effects";
  return "the graph does not call it recomputable";
}

NEAP_FUNC std::string text_of(held_storage const& h) {
  return h.name + " may not run again: " + h.why + " (" + std::to_string(h.bytes) + " bytes)";
}

}  // namespace detail
}}  // namespace neap::v0
