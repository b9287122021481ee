// Whether a plan for records on several streams is right: every pair that shares bytes is asked for its clocks. Trusts
// nothing but the records and the offsets.
#pragma once

#include <neap/core/error.hpp>
#include <neap/memory/stream_records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace neap::inline v0 {

/// The first fault of a plan as one line, or nothing if it is right: one offset a record, none negative, aligned, fixed
/// offsets kept, records share bytes only where each part of one has ended when a part of the other begins, every
/// hand-over between streams among the waits and no other, the arena large enough and not below the claimed bound. A
/// plan without offsets has nothing to be wrong. O(n^2) pairs, O(parts^2 * streams) for those that share bytes.
inline status verify(stream_problem const& p, stream_plan const& planned) {
  memory_plan const& plan = planned.plan;
  if (!has_offsets(plan)) return {};
  if (auto const wrong = fault_of(p); !wrong.empty()) return failure{wrong.message()};
  auto const n = p.count();
  if (plan.offsets.size() != n)
    return failure{"the plan has " + std::to_string(plan.offsets.size()) + " offsets for " + std::to_string(n) +
                   " records"};
  auto const name = [](std::size_t i) { return "record " + std::to_string(i); };
  std::int64_t top = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t const at = plan.offsets[i];
    std::int64_t end = 0;
    if (at < 0) return failure{name(i) + ": its offset " + std::to_string(at) + " is negative"};
    if (__builtin_add_overflow(at, p.size[i], &end)) return failure{name(i) + ": its end overflows"};
    if (at % p.alignment_of(i) != 0)
      return failure{name(i) + ": its offset " + std::to_string(at) + " is not a multiple of " +
                     std::to_string(p.alignment_of(i))};
    if (p.fixed_of(i) != any_offset && at != p.fixed_of(i))
      return failure{name(i) + ": it lies at " + std::to_string(at) + ", fixed at " + std::to_string(p.fixed_of(i))};
    if (p.size[i] > 0 || p.fixed_of(i) != any_offset) top = std::max(top, end);
  }
  if (top > plan.arena_bytes)
    return failure{"the arena of " + std::to_string(plan.arena_bytes) + " bytes ends before the records, at " +
                   std::to_string(top)};
  if (plan.lower_bound_bytes > plan.arena_bytes)
    return failure{"the arena of " + std::to_string(plan.arena_bytes) + " bytes is below the bound it claims"};
  if (plan.status == plan_status::optimal && plan.lower_bound_bytes != plan.arena_bytes)
    return failure{"the plan claims to be optimal, and its bound is below its arena"};

  std::vector<stream_wait> needed;
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = a + 1; b < n; ++b) {
      if (p.size[a] == 0 || p.size[b] == 0) continue;
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
  std::vector<stream_wait> told = planned.waits;
  std::sort(needed.begin(), needed.end(), before);
  std::sort(told.begin(), told.end(), before);
  auto const wait = [](stream_wait const& w) {
    return "record " + std::to_string(w.later) + " for record " + std::to_string(w.earlier);
  };
  for (auto const& w : needed)
    if (!std::binary_search(told.begin(), told.end(), w, before))
      return failure{"the wait of " + wait(w) + " is missing"};
  for (auto const& w : told)
    if (!std::binary_search(needed.begin(), needed.end(), w, before))
      return failure{"the wait of " + wait(w) + " is for nothing"};
  return {};
}

}  // namespace neap::inline v0
