// A schedule: the order in which the ops of a graph are issued.
#pragma once

#include <neap/core/id.hpp>

#include <vector>

namespace neap { inline namespace v0 {

/// Ops in issue order; a position is an index into it. Transfers run on streams of their own: a load is issued, and its
/// memory taken, at its position; a store is issued at its position, and what it moves out is freed later (simulation).
struct schedule {
  std::vector<op_id> order;

  std::size_t size() const { return order.size(); }
  op_id operator[](std::size_t position) const { return order[position]; }
  auto begin() const { return order.begin(); }
  auto end() const { return order.end(); }
  friend bool operator==(schedule const&, schedule const&) = default;
};

/// The position of each op, by id. O(ops).
inline table<op_id, std::uint32_t> positions(schedule const& s) {
  table<op_id, std::uint32_t> at(s.size());
  for (std::size_t i = 0; i < s.size(); ++i) at[s[i]] = static_cast<std::uint32_t>(i);
  return at;
}

}}  // namespace neap::v0
