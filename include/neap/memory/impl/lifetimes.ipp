// The bodies of <neap/memory/lifetimes.hpp>.
#pragma once

#include <neap/memory/lifetimes.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC lifetime_records lifetimes(flow_facts const& facts, schedule const& order, simulation const& result) {
  lifetime_records l;
  auto const alignment = facts.options().alignment;
  l.record_of.assign(facts.storage_count(), lifetime_records::none);
  l.workspace_of.assign(order.size(), lifetime_records::none);
  // Storages in the order in which they are made, so that a chain of takeovers is met from its beginning.
  plain_vector<storage_id> made;
  made.append(facts.given_storages().data(), facts.given_storages().size());
  for (auto o : order)
    for (auto s : facts.makes(o)) made.push_back(s);
  for (auto s : made) {
    auto const live = result.live[s];
    if (live.empty() || facts.bytes(s) == 0) continue;
    if (auto const from = result.takes_over[s]; from != nothing<storage_id>) {
      auto const r = l.record_of[s] = l.record_of[from];
      l.records[r].upper = live.last + 1;
      continue;
    }
    l.record_of[s] = static_cast<std::uint32_t>(l.records.size());
    usage_record r;
    r.lower = live.first;
    r.upper = live.last + std::int64_t{1};
    r.size = facts.bytes(s);
    r.alignment = alignment;
    l.records.push_back(r);
  }
  if (facts.has_workspace())
    for (std::uint32_t p = 0; p < order.size(); ++p)
      if (auto const bytes = facts.workspace(order[p]); bytes > 0) {
        l.workspace_of[p] = static_cast<std::uint32_t>(l.records.size());
        usage_record r;
        r.lower = p;
        r.upper = p + std::int64_t{1};
        r.size = bytes;
        r.alignment = alignment;
        l.records.push_back(r);
      }
  return l;
}

}}  // namespace neap::v0
