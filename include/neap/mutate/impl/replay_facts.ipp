// The bodies of <neap/mutate/replay_facts.hpp>.
#pragma once

#include <neap/mutate/replay_facts.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC replay_facts::replay_facts(op_graph const& g, schedule const& order) : at(positions(order)) {
  values.build(g.storage_count(), [&](auto&& pair) {
    for (auto v : g.values()) pair(g.storage(v), v);
  });
  if (g.has_updates())
    for (auto v : g.values()) {
      auto const& r = g.record(v);
      if (r.alias == alias_kind::update)
        updates.push_back({r.storage, static_cast<std::uint16_t>(r.version - 1), at[r.producer]});
      else if (auto const base = g.overwrites(v); base != nothing<value_id>)
        updates.push_back({g.storage(base), g.record(base).version, at[r.producer]});
    }
  copies.build(g.origin_count(), [&](auto&& pair) {
    for (auto o : g.ops())
      if (auto const origin = g.origin(o); origin != o) pair(origin, o);
  });
}

}}  // namespace neap::v0
