// How well a plan uses its arena, moment by moment: what is in use, how high it reaches, and what lies free beneath.
//
//   highest ->  |   cccc        At a moment, load is the bytes in use, highest the end of the highest record in use, and
//               | aa            free the unused bytes below it: highest - load. The arena is the largest
//               | aabbbb        `highest`; no arena is smaller than the largest load.
//               +--------> time
#pragma once

#include <neap/memory/records.hpp>
#include <neap/plan/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// From `moment` up to the next point: bytes in use, and the end of the highest of them.
struct fragmentation_point {
  std::int64_t moment = 0, load = 0, highest = 0;
  constexpr std::int64_t free() const { return highest - load; }
  friend constexpr bool operator==(fragmentation_point const&, fragmentation_point const&) = default;
};

struct fragmentation_report {
  std::vector<fragmentation_point> points;  ///< ascending, one a moment at which a record comes, goes or changes
  std::int64_t arena_bytes = 0;             ///< the plan's
  std::int64_t largest_load = 0;            ///< bytes; an arena of that size has no fragmentation
  std::int64_t load_moment = 0;             ///< the first moment of the largest load
  std::int64_t worst_moment = 0;            ///< the first moment at which most bytes lie free beneath what is in use
  std::int64_t worst_free = 0;              ///< how many these are
  double used_share = 1;  ///< over all moments, the bytes in use as a share of those up to the highest in use

  constexpr std::int64_t lost_bytes() const { return arena_bytes - largest_load; }  ///< arena above the largest load
  /// The arena over the largest load: 1 means no fragmentation.
  constexpr double ratio() const {
    return largest_load > 0 ? static_cast<double>(arena_bytes) / static_cast<double>(largest_load) : 1.0;
  }
};

/// The report on a plan that verify() finds right. Without offsets: no points. O(n log n) time, O(n) memory.
inline fragmentation_report fragmentation(memory_problem const& p, memory_plan const& plan) {
  fragmentation_report report;
  report.arena_bytes = plan.arena_bytes;
  if (!has_offsets(plan)) return report;
  struct piece {
    std::int64_t lower, upper, bytes, end;
  };
  std::vector<piece> pieces;
  std::vector<std::int64_t> moments;
  for (std::size_t i = 0; i < p.count(); ++i)
    p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t a, std::int64_t b) {
      pieces.push_back({lo, hi, b - a, plan.offsets[i] + b});
      moments.push_back(lo), moments.push_back(hi);
    });
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  std::sort(pieces.begin(), pieces.end(), [](piece const& x, piece const& y) { return x.lower < y.lower; });
  std::vector<std::pair<std::int64_t, std::int64_t>> deaths;  // upper, bytes
  for (auto const& x : pieces) deaths.emplace_back(x.upper, x.bytes);
  std::sort(deaths.begin(), deaths.end());

  std::priority_queue<std::pair<std::int64_t, std::int64_t>> alive;  // end, upper; the dead leave when they surface
  std::size_t born = 0, dead = 0;
  std::int64_t load = 0;
  double used = 0, reached = 0;
  for (std::size_t k = 0; k < moments.size(); ++k) {
    auto const now = moments[k];
    for (; dead < deaths.size() && deaths[dead].first == now; ++dead) load -= deaths[dead].second;
    for (; born < pieces.size() && pieces[born].lower == now; ++born) {
      load += pieces[born].bytes;
      alive.emplace(pieces[born].end, pieces[born].upper);
    }
    while (!alive.empty() && alive.top().second <= now) alive.pop();
    fragmentation_point const point{now, load, alive.empty() ? 0 : alive.top().first};
    if (report.points.empty() || point.load > report.largest_load)
      report.largest_load = point.load, report.load_moment = now;
    if (report.points.empty() || point.free() > report.worst_free)
      report.worst_free = point.free(), report.worst_moment = now;
    report.points.push_back(point);
    if (k + 1 < moments.size()) {
      auto const span = static_cast<double>(moments[k + 1] - now);
      used += span * static_cast<double>(point.load), reached += span * static_cast<double>(point.highest);
    }
  }
  if (reached > 0) report.used_share = used / reached;
  return report;
}

/// One CSV row a point: moment,load_bytes,highest_byte,free_bytes.
inline std::string fragmentation_csv(fragmentation_report const& report) {
  std::string out = "moment,load_bytes,highest_byte,free_bytes\n";
  for (auto const& x : report.points) {
    out += std::to_string(x.moment);
    for (auto v : {x.load, x.highest, x.free()}) (out += ',') += std::to_string(v);
    out += '\n';
  }
  return out;
}

/// What a plan places above its residents, as records of positions of its schedule with their offsets there.
struct placed_records {
  std::vector<usage_record> records;
  memory_plan placed;
};

/// The buffers and workspaces of a plan that is right (verify/) as records; a buffer that takes another's bytes over
/// begins where that one ends. `lower_bound_bytes` is the largest load: an arena of these records is no smaller.
/// O(buffers + steps).
inline placed_records records_of(plan const& p) {
  placed_records out;
  auto const add = [&](std::int64_t lower, std::int64_t upper, std::int64_t bytes, std::int64_t offset) {
    usage_record r;
    r.lower = lower, r.upper = upper, r.size = bytes;
    out.records.push_back(std::move(r));
    out.placed.offsets.push_back(offset - p.resident_bytes);
  };
  auto const buffer_of = p.buffer_of();
  std::vector<std::uint32_t> record_of(p.buffers.size(), plan::no_buffer);
  for (std::uint32_t i = 0; i < p.buffers.size(); ++i) {
    plan_buffer const& b = p.buffers[i];
    if (b.resident || b.bytes == 0) continue;
    record_of[i] = static_cast<std::uint32_t>(out.records.size());
    add(b.first, b.last + std::int64_t{1}, b.bytes, b.offset);
  }
  for (auto const& b : p.buffers)
    if (b.takes_over != nothing<storage_id> && buffer_of[b.takes_over] != plan::no_buffer)
      if (auto const r = record_of[buffer_of[b.takes_over]]; r != plan::no_buffer)
        out.records[r].upper = std::min<std::int64_t>(out.records[r].upper, b.first);
  for (std::size_t k = 0; k < p.steps.size(); ++k)
    if (auto const& s = p.steps[k]; s.workspace_bytes > 0)
      add(static_cast<std::int64_t>(k), static_cast<std::int64_t>(k) + 1, s.workspace_bytes, s.workspace_offset);
  out.placed.arena_bytes = p.arena_bytes - p.resident_bytes;
  auto const report = fragmentation(out.records, out.placed);
  out.placed.lower_bound_bytes = report.largest_load;
  out.placed.moment = report.load_moment;
  if (report.lost_bytes() == 0) out.placed.status = plan_status::optimal;
  return out;
}

/// The report on the planned part of a plan's arena; moments are positions of its schedule.
inline fragmentation_report fragmentation(plan const& p) {
  auto const r = records_of(p);
  return fragmentation(r.records, r.placed);
}

}}  // namespace neap::v0
