// The bodies of <neap/memory/make_plan.hpp>.
#pragma once

#include <neap/memory/make_plan.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::vector<transfer_wait> transfer_waits(flow_facts const& facts, schedule const& order,
                                                    simulation const& s) {
  if (!facts.has_transfers()) return {};
  plain_vector<transfer_wait> waits;
  auto const n = static_cast<std::uint32_t>(order.size());
  auto const at = positions(order);
  auto const is_transfer = [&](op_id o) { return facts.stream(o) != op_stream::compute; };
  for (std::uint32_t p = 0; p < n; ++p)
    for (auto before : facts.after(order[p]))
      if (is_transfer(before) && facts.stream(before) != facts.stream(order[p])) waits.push_back({p, at[before]});
  for (std::uint32_t t = 0; t < n; ++t) {
    if (!is_transfer(order[t])) continue;
    std::uint32_t p = t + 1;
    while (p < n && (is_transfer(order[p]) || s.start[p] < s.end[t])) ++p;
    waits.push_back({p, t});
  }
  detail::sort_list(waits);
  waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
  plain_vector<bool> had(n);
  waits.erase_if([&](transfer_wait w) {
    if (had[w.transfer]) return true;
    if (w.step == n || !is_transfer(order[w.step])) had[w.transfer] = true;
    return false;
  });
  return {waits.begin(), waits.end()};
}

}  // namespace detail
}}  // namespace neap::v0
