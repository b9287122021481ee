// Why nothing fits: an irreducible infeasible subset of the records. Take any one of them away and the rest fits.
#pragma once

#include <neap/memory/combine.hpp>
#include <neap/memory/exact/exact.hpp>
#include <neap/memory/records.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace neap { inline namespace v0 {

/// The plan of `exact` at `capacity`; if it is infeasible, `conflict` names records that together do not fit, and of
/// which none can be left out (as far as the budget, which holds for each question, can prove). Up to O(n) searches of
/// ever smaller problems: halves are tried before single records.
inline memory_plan explain_infeasible(memory_problem const& p, std::int64_t capacity, node_budget budget = {}) {
  exact const decide{.capacity = capacity, .budget = budget};
  memory_plan plan = decide(p);
  if (plan.status != plan_status::infeasible || !fault_of(p).empty()) return plan;
  std::vector<std::uint32_t> kept(p.count());
  std::iota(kept.begin(), kept.end(), 0u);
  for (std::size_t chunk = kept.size() / 2 > 0 ? kept.size() / 2 : 1;; chunk /= 2) {
    for (std::size_t from = 0; from < kept.size();) {
      std::vector<std::uint32_t> fewer;
      for (std::size_t k = 0; k < kept.size(); ++k)
        if (k < from || k >= from + chunk) fewer.push_back(kept[k]);
      memory_plan const without = decide(detail::subset(p, fewer));
      plan.work += without.work;
      if (without.status == plan_status::infeasible)
        kept = fewer;  // the rest still does not fit: these were not needed
      else from += chunk;
    }
    if (chunk == 1) break;
  }
  plan.conflict.assign(kept.begin(), kept.end());
  return plan;
}

}}  // namespace neap::v0
