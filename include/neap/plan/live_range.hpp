// Live ranges: when a storage's bytes are taken, in positions of a schedule.
#pragma once

#include <neap/core/id.hpp>
#include <neap/core/units.hpp>

#include <cstdint>

namespace neap { inline namespace v0 {

/// Positions [first, last], both included. A storage that the step neither makes nor reads has first > last.
struct live_range {
  std::uint32_t first = 1, last = 0;
  bool empty() const { return first > last; }
  bool overlaps(live_range o) const { return !empty() && !o.empty() && first <= o.last && o.first <= last; }
  friend bool operator==(live_range, live_range) = default;
};

}}  // namespace neap::v0
