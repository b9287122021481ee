// The load bound: the most bytes living at one moment, with what alignment must waste there. No arena is smaller, so a
// plan that meets it is optimal.
//
//   |aa......|bbb.....|c|     Three records of a few bytes at multiples of 8 need two whole steps of 8 and the bytes of
//   0        8        16      the one on top: 17, where the sum of their bytes is 6.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace neap { inline namespace v0 {

struct load_bound {
  /// The largest sum of bytes living at one moment, each up to the next aligned place but for one on top; or the end of
  /// a fixed record, if higher.
  std::int64_t bytes = 0;
  std::int64_t moment = 0;  ///< the first moment of that load
};

namespace detail {

struct load_event {
  std::int64_t at, delta;
};

/// The loads as changes, sorted by time, one per moment at which something changes.
constexpr plain_vector<load_event> load_events(memory_problem const& p) {
  plain_vector<load_event> events;
  std::int64_t first = 0, last = 0;
  for (std::size_t i = 0; i < p.count(); ++i) {
    if (i == 0) first = p.lower[0], last = p.upper[0];
    first = std::min(first, p.lower[i]), last = std::max(last, p.upper[i]);
  }
  auto const n = p.count();
  if (static_cast<std::uint64_t>(last - first) < 4 * n + 64) {  // a dense clock: count instead of sorting
    std::vector<std::int64_t> change(static_cast<std::size_t>(last - first) + 1, 0);
    for (std::size_t i = 0; i < n; ++i)
      p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t a, std::int64_t b) {
        change[static_cast<std::size_t>(lo - first)] += b - a;
        change[static_cast<std::size_t>(hi - first)] -= b - a;
      });
    for (std::size_t t = 0; t < change.size(); ++t)
      if (change[t] != 0) events.push_back({first + static_cast<std::int64_t>(t), change[t]});
    return events;
  }
  events.reserve(2 * n);
  for (std::size_t i = 0; i < n; ++i)
    p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t a, std::int64_t b) {
      events.push_back({lo, b - a});
      events.push_back({hi, a - b});
    });
  detail::sort_list(events, [](load_event const& x, load_event const& y) { return x.at < y.at; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < events.size(); ++i)
    if (kept > 0 && events[kept - 1].at == events[i].at) events[kept - 1].delta += events[i].delta;
    else events[kept++] = events[i];
  events.resize(kept);
  return events;
}

/// What records whose offsets are multiples of `step` need at one moment: a record with another one above it uses up whole
/// steps, so the sum of the rounded sizes, less the rounding of one on top. Raises `best`.
constexpr void raise_by_steps(memory_problem const& p, std::int64_t step, load_bound& best) {
  struct piece {
    std::int64_t lower, upper, bytes, slack;
  };
  plain_vector<piece> born;
  for (std::size_t i = 0; i < p.count(); ++i) {
    if (p.alignment_of(i) % step != 0) continue;
    p.for_each_piece(i, [&](std::int64_t lo, std::int64_t hi, std::int64_t a, std::int64_t b) {
      if (a % step == 0) born.push_back({lo, hi, align_up(b - a, step), align_up(b - a, step) - (b - a)});
    });
  }
  plain_vector<piece> dies = born;
  detail::sort_list(born, [](piece const& x, piece const& y) { return x.lower < y.lower; });
  detail::sort_list(dies, [](piece const& x, piece const& y) { return x.upper < y.upper; });
  auto const less_slack = [](piece const& x, piece const& y) { return x.slack < y.slack; };
  plain_vector<piece> alive;  // a heap by slack; the dead leave when they surface
  std::int64_t load = 0;
  for (std::size_t k = 0, dead = 0; k < born.size();) {
    auto const now = born[k].lower;
    for (; dead < dies.size() && dies[dead].upper <= now; ++dead) load -= dies[dead].bytes;
    for (; k < born.size() && born[k].lower == now; ++k) {
      load += born[k].bytes;
      alive.push_back(born[k]);
      std::push_heap(alive.begin(), alive.end(), less_slack);
    }
    while (alive.front().upper <= now) {
      std::pop_heap(alive.begin(), alive.end(), less_slack);
      alive.pop_back();
    }
    if (load - alive.front().slack > best.bytes) best = {load - alive.front().slack, now};
  }
}

/// The steps worth a look: alignments that waste something, and what all alignments share. A few; each costs a sweep.
constexpr std::vector<std::int64_t> steps_of(memory_problem const& p) {
  std::vector<std::int64_t> steps;
  if (p.alignment.empty()) return steps;
  bool wastes = false;
  std::int64_t shared = 0;
  for (std::size_t i = 0; i < p.count(); ++i) {
    if (!p.occupies(i)) continue;
    shared = std::gcd(shared, p.alignment[i]);
    wastes |= p.size[i] % p.alignment[i] != 0;
  }
  if (!wastes) return steps;
  constexpr std::size_t most = 16;
  if (shared > 1) steps.push_back(shared);
  for (std::size_t i = 0; i < p.count() && steps.size() < most; ++i)
    if (p.occupies(i) && p.alignment[i] > 1 && std::find(steps.begin(), steps.end(), p.alignment[i]) == steps.end())
      steps.push_back(p.alignment[i]);
  return steps;
}

}  // namespace detail

/// The load bound. O(n log n), O(n) where the moments are dense and no alignment wastes anything. The records must have
/// no fault_of().
constexpr load_bound load_lower_bound(memory_problem const& p) {
  load_bound best;
  std::int64_t load = 0;
  bool first = true;
  for (auto const& e : detail::load_events(p)) {
    load += e.delta;
    if (load > best.bytes || first) best = {load, e.at};
    first = false;
  }
  for (auto step : detail::steps_of(p)) detail::raise_by_steps(p, step, best);
  for (std::size_t i = 0; i < p.fixed.size(); ++i)
    if (p.fixed[i] != any_offset && p.fixed[i] + p.size[i] > best.bytes) best = {p.fixed[i] + p.size[i], p.lower[i]};
  for (std::size_t i = 0; i + 1 < p.gap_begin.size(); ++i)  // a record has its place in its gaps, too
    if (p.occupies(i) && p.size[i] > best.bytes) best = {p.size[i], p.lower[i]};
  return best;
}

namespace detail {

/// A plan from offsets known to be right: measured, and optimal if it meets the load bound.
constexpr memory_plan finished(memory_problem const& p, std::vector<std::int64_t> offsets, load_bound bound) {
  memory_plan plan;
  plan.arena_bytes = end_of(p, offsets);
  plan.offsets = static_cast<std::vector<std::int64_t>&&>(offsets);
  plan.lower_bound_bytes = bound.bytes;
  plan.moment = bound.moment;
  plan.status = plan.arena_bytes == bound.bytes ? plan_status::optimal : plan_status::feasible;
  return plan;
}

}  // namespace detail

}}  // namespace neap::v0
