// What mutations ask of a candidate again and again, found once for all of them.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/csr.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/plan/schedule.hpp>

#include <cstdint>

namespace neap::inline v0 {

/// Who stands where, which values a storage has, what was copied already, when storages are overwritten. O(ops + values).
struct replay_facts {
  struct update {
    storage_id storage;
    std::uint16_t overwrites;  // the version
    std::uint32_t position;
  };
  table<op_id, std::uint32_t> at;
  csr<storage_id, value_id> values;
  plain_vector<update> updates;
  csr<op_id, op_id> copies;  // ops that are not their own origin, by that

  NEAP_ONCE replay_facts(op_graph const& g, schedule const& order) : at(positions(order)) {
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
};

}  // namespace neap::inline v0
