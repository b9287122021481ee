// What mutations ask of a candidate again and again, found once for all of them.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/csr.hpp>
#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/plan/schedule.hpp>

#include <cstdint>
#include <vector>

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
  number_map families;                     // origins of ops that are not their own, to rows of `copies`
  std::vector<std::vector<op_id>> copies;  // such ops by origin

  NEAP_ONCE replay_facts(op_graph const& g, schedule const& order) : at(positions(order)) {
    values.build(g.storage_count(), [&](auto&& pair) {
      for (auto v : g.values()) pair(g.storage(v), v);
    });
    if (g.has_updates())
      for (auto v : g.values())
        if (auto const& r = g.record(v); r.alias == alias_kind::update)
          updates.push_back({r.storage, static_cast<std::uint16_t>(r.version - 1), at[r.producer]});
    for (auto o : g.ops())
      if (auto const origin = g.origin(o); origin != o) {
        if (families.add(index(origin), static_cast<std::uint32_t>(copies.size()))) copies.emplace_back();
        copies[families.find(index(origin))].push_back(o);
      }
  }
};

}  // namespace neap::inline v0
