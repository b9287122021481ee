// The bodies of <neap/schedule/order.hpp>.
#pragma once

#include <neap/schedule/order.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {

NEAP_FUNC status check_order(flow_facts const& facts, schedule const& s) {
  auto const n = facts.op_count();
  auto const op = [](op_id o) { return "op " + std::to_string(index(o)); };
  if (s.size() != n) return failure{detail::text_of({"schedule: ", s.size(), " positions for ", n, " ops"})};
  std::vector<bool> done(n);
  for (auto o : s) {
    if (index(o) >= n) return failure{detail::text_of({"schedule: ", op(o), " is not in the graph"})};
    if (done[index(o)]) return failure{detail::text_of({"schedule: ", op(o), " appears twice"})};
    for (auto before : facts.after(o))
      if (!done[index(before)])
        return failure{detail::text_of({"schedule: ", op(o), " stands before ", op(before), ", which it needs"})};
    done[index(o)] = true;
  }
  return {};
}

}  // namespace neap::inline v0
