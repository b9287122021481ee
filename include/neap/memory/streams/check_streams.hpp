// Whether a plan for records on several streams is right: the clocks of every pair that shares bytes are compared. Trusts
// nothing but the records and the offsets.
#pragma once

#include <neap/core/error.hpp>
#include <neap/memory/check/check.hpp>
#include <neap/memory/streams/stream_records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// The first fault of a plan as one line, or nothing if it is right: one offset a record, none negative, aligned, fixed
/// offsets kept, records share bytes only where each part of one has ended when a part of the other begins, every
/// hand-over between streams among the waits and no other, the arena large enough and not below the claimed bound. A
/// plan without offsets has nothing to be wrong. O(n^2) pairs, O(parts^2 * streams) for those that share bytes.
inline status verify(stream_problem const& p, stream_plan const& planned) {
  memory_plan const& plan = planned.plan;
  if (!has_offsets(plan)) return {};
  if (auto each = detail::check_each(p, plan); !each.ok()) return each;
  auto const n = p.count();
  std::vector<stream_wait> needed;
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = a + 1; b < n; ++b) {
      if (!p.occupies(a) || !p.occupies(b)) continue;
      if (plan.offsets[a] + p.size[a] <= plan.offsets[b] || plan.offsets[b] + p.size[b] <= plan.offsets[a]) continue;
      bool forth = false, back = false;
      for (auto x = p.parts_begin(a); x < p.parts_end(a); ++x)
        for (auto y = p.parts_begin(b); y < p.parts_end(b); ++y) {
          auto const from = std::max(plan.offsets[a] + p.part_from(x), plan.offsets[b] + p.part_from(y));
          if (from >= std::min(plan.offsets[a] + p.part_to(a, x), plan.offsets[b] + p.part_to(b, y))) continue;
          bool x_first = true, y_first = true;  // every op that one waits for has ended when the other is born
          for (std::size_t s = 0; s < p.streams; ++s) {
            x_first = x_first && p.dies[x * p.streams + s] <= p.born[y * p.streams + s];
            y_first = y_first && p.dies[y * p.streams + s] <= p.born[x * p.streams + s];
          }
          if (!x_first && !y_first)
            return failure{"records " + std::to_string(a) + " and " + std::to_string(b) + " share bytes from " +
                           std::to_string(from) + " on, and neither has certainly ended when the other begins"};
          forth = forth || x_first, back = back || y_first;
        }
      if (p.stream_of(a) == p.stream_of(b)) continue;
      auto const i = static_cast<std::uint32_t>(a), j = static_cast<std::uint32_t>(b);
      if (forth) needed.push_back({i, j});
      if (back) needed.push_back({j, i});
    }
  auto const before = [](stream_wait const& x, stream_wait const& y) {
    return x.earlier != y.earlier ? x.earlier < y.earlier : x.later < y.later;
  };
  std::vector<stream_wait> planned_waits = planned.waits;
  std::sort(needed.begin(), needed.end(), before);
  std::sort(planned_waits.begin(), planned_waits.end(), before);
  auto const wait = [](stream_wait const& w) {
    return "record " + std::to_string(w.later) + " for record " + std::to_string(w.earlier);
  };
  for (auto const& w : needed)
    if (!std::binary_search(planned_waits.begin(), planned_waits.end(), w, before))
      return failure{"the wait of " + wait(w) + " is missing"};
  for (auto const& w : planned_waits)
    if (!std::binary_search(needed.begin(), needed.end(), w, before))
      return failure{"the wait of " + wait(w) + " is for nothing"};
  return {};
}

}}  // namespace neap::v0
