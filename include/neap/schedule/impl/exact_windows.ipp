// The bodies of <neap/schedule/exact_windows.hpp>.
#pragma once

#include <neap/schedule/exact_windows.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {

NEAP_FUNC schedule exact_windows::operator()(flow_facts const& facts, schedule order) const {
  if (facts.has_transfers() || order.size() < 3) return order;
  simulator sim;
  simulation now = sim(facts, order);
  detail::window_order window(facts);
  for (int round = 0; round < rounds; ++round) {
    auto const level = now.peak_bytes - static_cast<bytes_t>(near * static_cast<double>(now.peak_bytes));
    schedule next = order;
    auto at = positions(next);
    bool changed = false;
    auto const half = std::max(ops / 2, 1u);
    for (std::uint32_t p = 0; p < next.size();) {
      if (now.bytes_at[p] < level) {
        ++p;
        continue;
      }
      auto const begin = p > half ? p - half : 0;
      auto const end = window.solve(next, at, now.live, begin, ops, sets);
      if (window.is_better()) {
        changed = true;
        auto const& best = window.ops();
        for (std::uint32_t k = 0; k < best.size(); ++k) next.order[begin + k] = best[k], at[best[k]] = begin + k;
        sim(facts, next, now);
        order = next;
      }
      p = std::max(p + 1, end > half / 2 ? end - half / 2 : end);
    }
    if (!changed) break;
  }
  return order;
}

}  // namespace neap::inline v0
