// The bodies of <neap/optimize/held_at_peak.hpp>.
#pragma once

#include <neap/optimize/held_at_peak.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {
namespace detail {

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
namespace detail {

NEAP_FUNC std::vector<held_storage> held_at_peak(candidate const& c) {
  auto const& g = c.graph;
  auto const peak = c.result.peak_position;
  enum : std::uint8_t { before = 1, at = 2, after = 4 };
  table<storage_id, std::uint8_t> touched(g.storage_count(), 0);
  for (std::uint32_t p = 0; p < c.order.size(); ++p) {
    std::uint8_t const when = p < peak ? before : p == peak ? at : after;
    for (auto v : g.inputs(c.order[p])) touched[g.storage(v)] |= when;
    for (auto v : g.outputs(c.order[p])) touched[g.storage(v)] |= when;
  }
  for (auto v : g.kept()) touched[g.storage(v)] |= at;  // an output: it stays whatever may run again
  std::vector<held_storage> held;
  for (auto s : g.storages()) {
    auto const first = g.record(s).first;
    auto const o = g.producer(first);
    if (touched[s] != (before | after) || g.is_resident(s) || g.bytes(s) == 0 || o == nothing<op_id>) continue;
    if (c.result.takes_over[s] != nothing<storage_id> && c.result.live[s].first > peak) continue;
    if (flow::stream(g, o) != op_stream::compute) continue;  // it was loaded
    op_id not_again = flow::is_recomputable(g, o) ? nothing<op_id> : o;
    if (g.record(s).updates != 0)
      for (auto v : g.values())
        if (g.storage(v) == s && g.record(v).alias == alias_kind::update) not_again = g.producer(v);
    if (not_again == nothing<op_id>) continue;
    auto const* x = g.as<op::opaque>(not_again);
    auto const given = g.name(not_again);
    std::string const name = !given.empty() ? std::string(given)
                                            : std::string(x ? g.text(x->target) : g.facets(not_again).name) + " #" +
                                                  std::to_string(index(g.origin(not_again)));
    held.push_back({not_again, name, why_not_again(g, not_again), g.bytes(s)});
  }
  sort_list(held, [](held_storage const& a, held_storage const& b) { return a.bytes > b.bytes; });
  return held;
}

}  // namespace detail

}}  // namespace neap::v0
