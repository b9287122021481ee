// The bodies of <neap/mutate/gap.hpp>.
#pragma once

#include <neap/mutate/gap.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::vector<bool> movable_storages(op_graph const& g, movable_kind which) {
  std::vector<bool> may(g.storage_count());
  for (auto s : g.storages())
    may[index(s)] = !g.is_resident(s) && (which == movable_kind::made_or_donated || !g.is_source(s)) && g.bytes(s) > 0;
  for (auto v : g.values())
    if (g.record(v).alias == alias_kind::update) may[index(g.storage(v))] = false;
  for (auto v : g.kept()) may[index(g.storage(v))] = false;
  return may;
}

NEAP_FUNC plain_vector<gap> gaps_at(op_graph const& g, schedule const& order, simulation const& result,
                                    std::uint32_t position, movable_kind which) {
  auto const may = movable_storages(g, which);
  std::vector<std::uint32_t> left(g.storage_count(), no_id), resume(g.storage_count(), no_id);
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    auto const see = [&](value_id v) {
      auto const s = index(g.storage(v));
      if (!may[s]) return;
      if (i <= position) left[s] = i;
      else if (resume[s] == no_id) resume[s] = i;
    };
    for (auto v : g.inputs(order[i])) see(v);
    for (auto v : g.outputs(order[i])) see(v);
  }
  plain_vector<gap> gaps;
  for (auto s : g.storages()) {
    auto const k = index(s);
    if (left[k] == no_id || left[k] == position || resume[k] == no_id) continue;
    if (result.takes_over[s] != nothing<storage_id> && result.live[s].first > position) continue;
    gaps.push_back({s, left[k], resume[k]});
  }
  return gaps;
}

}  // namespace detail
}}  // namespace neap::v0
