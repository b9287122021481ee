// From a schedule to the requests that a memory planner places: one usage record a buffer, with the storages that take
// one another over merged into one, and one of a single position a workspace. Moments are positions of the schedule.
//
//   auto const l = lifetimes(facts, order, simulate(...));
//   memory_plan m = default_planner{}(l.records);         // m.offsets[l.record_of[storage]]
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/records.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

struct lifetime_records {
  static constexpr std::uint32_t none = 0xffffffffu;
  std::vector<usage_record> records;
  table<storage_id, std::uint32_t> record_of;  // none: resident, without bytes, or never there
  std::vector<std::uint32_t> workspace_of;     // by position; none: the op needs no workspace
};

/// Records of everything but the residents. Their load is the simulated peak less the resident bytes, at each moment.
/// O(storages + ops).
lifetime_records lifetimes(flow_facts const& facts, schedule const& order, simulation const& result);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/impl/lifetimes.ipp>
#endif
