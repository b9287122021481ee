// The bodies of <neap/mutate/offload.hpp>.
#pragma once

#include <neap/mutate/offload.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC plain_vector<absence> absences(op_graph const& g, schedule const& order, simulation const& result,
                                         std::vector<bool> const& may_leave, offload const& how) {
  auto const n = static_cast<std::uint32_t>(order.size());
  // Each op's storages, and of each storage the next position that touches it.
  csr<storage_id, std::uint32_t> touched;
  touched.build(g.storage_count(), [&](auto&& pair) {
    std::vector<std::uint32_t> last(g.storage_count(), no_id);
    for (std::uint32_t p = 0; p < n; ++p) {
      auto const see = [&](value_id v) {
        auto const s = g.storage(v);
        if (may_leave[index(s)] && last[index(s)] != p) pair(s, p), last[index(s)] = p;
      };
      for (auto v : g.inputs(order[p])) see(v);
      for (auto v : g.outputs(order[p])) see(v);
    }
  });
  struct entry {
    std::uint32_t next, left;
    storage_id storage;
    bool operator<(entry const& o) const { return next < o.next || (next == o.next && storage < o.storage); }
  };
  std::priority_queue<entry> idle;
  std::vector<std::uint32_t> row(g.storage_count(), 0);
  plain_vector<bytes_t> back;  // by position: what comes back there
  back.assign(n + 1, 0);
  bytes_t away = 0;
  plain_vector<absence> found;
  for (std::uint32_t p = 0; p < n; ++p) {
    away -= back[p];
    while (result.bytes_at[p] - away > how.target && !idle.empty()) {
      auto const e = idle.top();
      if (e.next <= p) break;  // nothing here is idle
      idle.pop();
      auto const bytes = g.bytes(e.storage);
      double const transfer = how.lead * static_cast<double>(bytes) / how.bytes_per_second;
      auto until = e.next;
      while (until > p && result.start[e.next] - result.start[until] < transfer) --until;
      if (until == p) continue;
      found.push_back({e.storage, e.left, p, e.next});
      away += bytes, back[until] += bytes;
    }
    auto const seen = [&](value_id v) {
      auto const s = g.storage(v);
      if (!may_leave[index(s)]) return;
      auto const positions = touched[s];
      auto& k = row[index(s)];
      if (k >= positions.size() || positions[k] != p) return;
      if (++k < positions.size()) idle.push({positions[k], p, s});
    };
    for (auto v : g.inputs(order[p])) seen(v);
    for (auto v : g.outputs(order[p])) seen(v);
  }
  detail::sort_list(found, [](absence const& a, absence const& b) { return a.resume < b.resume; });
  return found;
}

}  // namespace detail
}}  // namespace neap::v0
