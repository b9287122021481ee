// What mutations ask of a candidate again and again, found once for all of them.
#pragma once

#include <neap/core/csr.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/plan/schedule.hpp>

#include <cstdint>

namespace neap { inline namespace v0 {

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

  replay_facts(op_graph const& g, schedule const& order);
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/replay_facts.ipp>
#endif
