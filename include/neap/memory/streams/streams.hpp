// Several streams: offsets for records whose lives are ordered by happens-before (memory/streams/stream_records.hpp).
//
// Conflicts form no interval graph, so the search works on a cover of them by cliques. A hand-over between records of
// different streams needs a wait (an event) on the device: it has a price in bytes.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/exact/canonical_search.hpp>
#include <neap/memory/exact/feasibility.hpp>
#include <neap/memory/exact/packing_problem.hpp>
#include <neap/memory/exact/probes.hpp>
#include <neap/memory/exact/window_search.hpp>
#include <neap/memory/greedy/greedy_by_size.hpp>
#include <neap/memory/records.hpp>
#include <neap/memory/streams/stream_records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

struct stream_options {
  /// The plan's cost is its arena and this much for each wait; no_hand_over: bytes are never shared across streams.
  std::int64_t price_bytes = 0;
  std::size_t tries = 100;  ///< with a price: so many times it is tried what a plan without one of the waits costs
  std::int64_t nodes = 1'000'000;
  std::size_t exact_limit = 400;  ///< beyond this many records: greedy by size only
  std::int64_t capacity = -1;     ///< bytes; -1: the smallest arena, else any plan within the capacity
  static constexpr std::int64_t no_hand_over = std::numeric_limits<std::int64_t>::max();
};

namespace detail {

/// Which records may not share bytes, as a bit matrix.
struct conflict_matrix {
  std::size_t count = 0, words = 0;
  std::vector<std::uint64_t> bits;
  explicit conflict_matrix(std::size_t n) : count(n), words((n + 63) / 64), bits(n * words, 0) {}
  bool operator()(std::size_t a, std::size_t b) const { return bits[a * words + b / 64] >> (b % 64) & 1; }
  void set(std::size_t a, std::size_t b) {
    bits[a * words + b / 64] |= std::uint64_t{1} << (b % 64);
    bits[b * words + a / 64] |= std::uint64_t{1} << (a % 64);
  }
};

/// The conflicts as a problem of the search: every conflict lies in a section, and all of a section are in conflict.
inline packing_problem packing_problem_of(conflict_matrix const& meets) {
  auto const n = meets.count;
  std::vector<std::vector<std::uint32_t>> cliques;
  conflict_matrix covered(n);
  auto const grow = [&](std::vector<std::uint32_t> clique) {
    for (std::uint32_t c = 0; c < n; ++c) {
      bool all = std::find(clique.begin(), clique.end(), c) == clique.end();
      for (auto x : clique) all = all && meets(x, c);
      if (all) clique.push_back(c);
    }
    for (auto x : clique)
      for (auto y : clique)
        if (x != y) covered.set(x, y);
    cliques.push_back(std::move(clique));
  };
  for (std::uint32_t a = 0; a < n; ++a) {
    bool alone = true;
    for (std::uint32_t b = 0; b < n; ++b) alone = alone && !meets(a, b);
    if (alone) cliques.push_back({a});
    for (std::uint32_t b = a + 1; b < n; ++b)
      if (meets(a, b) && !covered(a, b)) grow({a, b});
  }
  packing_problem g;
  g.sections = static_cast<std::uint32_t>(cliques.size());
  g.hull.assign(n, {0, g.sections});
  g.twin.resize(n);
  std::iota(g.twin.begin(), g.twin.end(), 0u);
  g.alive.assign(n * g.section_words(), 0);
  for (std::size_t s = 0; s < cliques.size(); ++s)
    for (auto x : cliques[s]) g.alive[x * g.section_words() + s / 64] |= std::uint64_t{1} << (s % 64);
  g.meets = meets.bits;
  return g;
}

/// Bytes in conflict: what is left of a problem when clocks have been compared.
struct conflict_problem {
  conflict_matrix meets;                             // records, as if windows were whole
  std::vector<std::int64_t> size, alignment, fixed;  // alignment and fixed empty: 1, any offset
  // With windows: parts of record i: [part_begin[i], part_begin[i + 1]), which of its bytes, and which of them meet.
  std::vector<std::uint32_t> part_begin;
  std::vector<std::int64_t> part_from, part_to;
  conflict_matrix parts_meet{0};

  explicit conflict_problem(std::size_t n) : meets(n), size(n, 0) {}
  conflict_problem(stream_problem const& p, bool across)
      : meets(p.count()),
        size(p.size),
        alignment(p.alignment),
        fixed(p.fixed) {
    auto const n = p.count();
    if (p.has_windows()) {
      part_begin = p.part_begin, part_from = p.part_lower, part_to = p.part_upper;
      parts_meet = conflict_matrix(part_from.size());
    }
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < a; ++b) {
        if (size[a] == 0 || size[b] == 0) continue;
        bool const never = !across && p.stream_of(a) != p.stream_of(b);
        if (never) forbid(a, b);
        else if (p.meet(a, b)) meets.set(a, b);
        if (never || !has_windows()) continue;
        for (auto x = part_begin[a]; x < part_begin[a + 1]; ++x)
          for (auto y = part_begin[b]; y < part_begin[b + 1]; ++y)
            if (!p.part_precedes(x, y) && !p.part_precedes(y, x)) parts_meet.set(x, y);
      }
  }
  std::size_t count() const { return size.size(); }
  bool has_windows() const { return !part_begin.empty(); }
  std::int64_t alignment_of(std::size_t i) const { return alignment.empty() ? 1 : alignment[i]; }
  std::int64_t fixed_of(std::size_t i) const { return fixed.empty() ? any_offset : fixed[i]; }
  /// The two may not share a byte, whatever their clocks say.
  void forbid(std::size_t a, std::size_t b) {
    meets.set(a, b);
    if (!has_windows()) return;
    for (auto x = part_begin[a]; x < part_begin[a + 1]; ++x)
      for (auto y = part_begin[b]; y < part_begin[b + 1]; ++y) parts_meet.set(x, y);
  }
  /// Where record `i` cannot start because of record `q` at `at`.
  void add_forbidden(std::size_t i, std::size_t q, std::int64_t at, std::vector<forbidden>& closed) const {
    if (!meets(i, q)) return;
    if (!has_windows()) return closed.push_back({at - size[i], at + size[q]});
    for (auto x = part_begin[i]; x < part_begin[i + 1]; ++x)
      for (auto y = part_begin[q]; y < part_begin[q + 1]; ++y)
        if (parts_meet(x, y)) closed.push_back({at + part_from[y] - part_to[x], at + part_to[y] - part_from[x]});
  }
  /// Where the records end: the arena that offsets need.
  std::int64_t end_of(std::vector<std::int64_t> const& offsets) const {
    std::int64_t top = 0;
    for (std::size_t i = 0; i < count(); ++i)
      if (size[i] > 0 || fixed_of(i) != any_offset) top = std::max(top, offsets[i] + size[i]);
    return top;
  }
  /// The records `indices` as a problem of their own.
  conflict_problem subset(std::vector<std::uint32_t> const& indices) const {
    conflict_problem out(indices.size());
    std::vector<std::uint32_t> parts;
    if (has_windows()) out.part_begin.push_back(0);
    for (std::size_t a = 0; a < indices.size(); ++a) {
      auto const i = indices[a];
      out.size[a] = size[i];
      if (!alignment.empty()) out.alignment.push_back(alignment[i]);
      if (!fixed.empty()) out.fixed.push_back(fixed[i]);
      for (std::size_t b = 0; b < a; ++b)
        if (meets(i, indices[b])) out.meets.set(a, b);
      if (!has_windows()) continue;
      for (auto x = part_begin[i]; x < part_begin[i + 1]; ++x) {
        parts.push_back(x);
        out.part_from.push_back(part_from[x]), out.part_to.push_back(part_to[x]);
      }
      out.part_begin.push_back(static_cast<std::uint32_t>(parts.size()));
    }
    out.parts_meet = conflict_matrix(parts.size());
    for (std::size_t x = 0; x < parts.size(); ++x)
      for (std::size_t y = 0; y < x; ++y)
        if (parts_meet(parts[x], parts[y])) out.parts_meet.set(x, y);
    return out;
  }
};

/// Sets of parts that meet one another: every pair that does lies in one, and every part.
inline std::vector<std::vector<std::uint32_t>> moments_of(packing_problem const& parts, std::size_t count) {
  std::vector<std::vector<std::uint32_t>> moments(parts.sections);
  for (std::uint32_t s = 0; s < parts.sections; ++s)
    for (std::uint32_t x = 0; x < count; ++x)
      if (parts.alive[x * parts.section_words() + s / 64] >> (s % 64) & 1) moments[s].push_back(x);
  return moments;
}

/// Fixed records first, then greedy by size. Infeasible only where fixed records collide.
inline memory_plan greedy_conflicts(conflict_problem const& p, std::vector<std::uint32_t> const& order) {
  memory_plan plan;
  plan.offsets.assign(p.count(), 0);
  std::vector<forbidden> closed;
  for (std::size_t k = 0; k < order.size(); ++k) {
    auto const i = order[k];
    bool const fixed = p.fixed_of(i) != any_offset;
    closed.clear();
    if (fixed) plan.offsets[i] = p.fixed_of(i);
    for (std::size_t j = 0; j < k; ++j) {
      auto const q = order[j];
      p.add_forbidden(i, q, plan.offsets[q], closed);
      if (!fixed) continue;
      for (auto const& c : closed)
        if (c.after < plan.offsets[i] && plan.offsets[i] < c.until)
          return refused({"they are fixed on the same bytes and may live at once", std::min(i, q), std::max(i, q)});
      closed.clear();
    }
    if (fixed) continue;
    std::sort(closed.begin(), closed.end(), [](forbidden const& x, forbidden const& y) { return x.after < y.after; });
    plan.offsets[i] = best_fit(closed, p.size[i], p.alignment_of(i));
  }
  plan.arena_bytes = p.end_of(plan.offsets);
  return plan;
}

inline window_search window_search_of(conflict_problem const& p,
                                      std::vector<std::vector<std::uint32_t>> const& moments) {
  plain_vector<window_search::record> records;
  plain_vector<window_search::piece> pieces;
  for (std::uint32_t i = 0; i < p.count(); ++i) records.push_back({i, p.size[i], p.alignment_of(i), p.fixed_of(i)});
  for (std::size_t x = 0; x < p.part_from.size(); ++x) pieces.push_back({0, 0, p.part_from[x], p.part_to[x]});
  return {std::move(records), std::move(pieces), p.part_begin,
          [&](std::uint32_t x, std::uint32_t y) { return p.parts_meet(x, y); }, moments};
}

/// The problem in units, as if windows were whole.
inline packing_problem packing_problem_of(conflict_problem const& p, std::int64_t unit) {
  auto packing = packing_problem_of(p.meets);
  for (auto bytes : p.size) packing.size.push_back(bytes / unit);
  for (auto a : p.alignment) packing.alignment.push_back(a > 1 ? a / unit : 1);
  for (auto at : p.fixed) packing.fixed.push_back(at < 0 ? -1 : at / unit);
  return packing;
}

/// Betters a plan and its bound by search; `order` says which records the search prefers. Whether it has proved that
/// nothing stays within the capacity.
inline bool search_conflicts(conflict_problem const& p, std::vector<std::uint32_t> const& order, std::int64_t unit,
                             std::int64_t capacity, std::int64_t nodes, memory_plan& plan) {
  auto const ordered = p.subset(order);
  auto const packing = packing_problem_of(ordered, unit);
  // What is in use at once is a bound; with windows, of parts.
  bool const windows = ordered.has_windows();
  auto const moments = windows ? moments_of(packing_problem_of(ordered.parts_meet), ordered.part_from.size())
                               : moments_of(packing, order.size());
  for (auto const& together : moments) {
    std::int64_t load = 0;
    for (auto x : together) load += windows ? ordered.part_to[x] - ordered.part_from[x] : ordered.size[x];
    plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, load);
  }
  std::vector<window_search> window_searches;  // made when it is first needed
  canonical_search decide(packing, {});
  std::vector<std::int64_t> offsets(order.size(), 0);  // in `order`
  for (std::size_t k = 0; k < ordered.fixed.size(); ++k) offsets[k] = std::max<std::int64_t>(ordered.fixed[k], 0);
  auto const answer = [&](probe asked) {
    decide.start(asked.capacity / unit);
    auto const most = windows ? asked.nodes / 4 + 1 : asked.nodes;  // first as if windows were whole
    auto fits = decide.run(stop_condition::after_nodes(most));
    auto spent = decide.nodes() + 1;
    if (fits == feasibility::yes)
      for (std::size_t k = 0; k < order.size(); ++k) offsets[k] = decide.offset(k) * unit;
    else if (windows && spent >= asked.nodes) fits = feasibility::unknown;
    else if (windows) {
      if (window_searches.empty()) window_searches.push_back(window_search_of(ordered, moments));
      fits = window_searches.front()(asked.capacity, asked.nodes - spent, {}, spent, offsets);
    }
    plan.work += spent;
    if (fits != feasibility::yes) return fits;
    for (std::size_t k = 0; k < order.size(); ++k) plan.offsets[order[k]] = offsets[k];
    plan.arena_bytes = p.end_of(plan.offsets);
    return fits;
  };
  if (capacity >= 0)
    return plan.lower_bound_bytes <= capacity && capacity < plan.arena_bytes &&
           answer({capacity, nodes}) == feasibility::no;
  capacity_walk walk(plan.lower_bound_bytes, plan.arena_bytes, unit);
  while (!walk.done() && plan.work < nodes) {
    auto asked = walk.next();
    asked.nodes = std::min(asked.nodes, nodes - plan.work);
    auto const fits = answer(asked);
    walk.learn(asked, fits, plan.arena_bytes);
  }
  plan.lower_bound_bytes = walk.bound();
  return false;
}

/// The least arena, or any within the capacity: greedy by size, then the search between the heaviest clique and that.
inline memory_plan plan_conflicts(conflict_problem const& p, std::int64_t capacity, std::int64_t nodes, bool search) {
  std::vector<std::uint32_t> order(p.count());  // the search prefers large records, too
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    bool const fa = p.fixed_of(a) != any_offset, fb = p.fixed_of(b) != any_offset;
    if (fa != fb) return fa;
    return p.size[a] != p.size[b] ? p.size[a] > p.size[b] : a < b;
  });
  memory_plan plan = greedy_conflicts(p, order);
  if (!has_offsets(plan)) return plan;
  std::int64_t unit = 0;
  for (std::size_t i = 0; i < p.count(); ++i) {
    auto const at = std::max<std::int64_t>(p.fixed_of(i), 0);
    if (p.size[i] > 0 || at > 0) plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, at + p.size[i]);
    unit = std::gcd(unit, std::gcd(p.size[i], at));
    if (p.alignment_of(i) > 1) unit = std::gcd(unit, p.alignment_of(i));
  }
  for (std::size_t x = 0; x < p.part_from.size(); ++x) unit = std::gcd(unit, std::gcd(p.part_from[x], p.part_to[x]));
  bool impossible = search && unit > 0 && plan.lower_bound_bytes < plan.arena_bytes &&
                    search_conflicts(p, order, unit, capacity, nodes, plan);
  plan.status = plan.lower_bound_bytes == plan.arena_bytes ? plan_status::optimal : plan_status::feasible;
  if (capacity < 0 || plan.arena_bytes <= capacity) return plan;
  impossible = impossible || plan.lower_bound_bytes > capacity;
  plan.offsets.clear();
  plan.arena_bytes = 0;
  plan.status = impossible ? plan_status::infeasible : plan_status::budget_spent;
  plan.why = {impossible ? "no placement stays within the capacity (proved)"
                         : "no placement within the capacity was found in the budget"};
  if (impossible) plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, capacity + 1);
  return plan;
}

/// The hand-overs across streams between records `a` and `b`, if they share bytes.
inline void add_waits(stream_problem const& p, std::vector<std::int64_t> const& offsets, std::uint32_t a,
                      std::uint32_t b, std::vector<stream_wait>& waits) {
  if (a == b || p.stream_of(a) == p.stream_of(b) || p.size[a] == 0 || p.size[b] == 0) return;
  if (offsets[a] < offsets[b] + p.size[b] && offsets[b] < offsets[a] + p.size[a] && p.hands_over(a, b))
    waits.push_back({a, b});
}

}  // namespace detail

/// Offsets for records on several streams: no two in conflict share a byte. Optimal where the search ends within its
/// nodes and waits are free or not allowed. With a price between, what handing over freely costs and what not at all does
/// is compared, and waits are given up one by one as long as that makes the plan cheaper; bound and status are those of
/// the arena with free hand-over, whatever the waits cost. O(n^2 parts^2 streams) besides the search. Infeasible, with
/// why: faulty records (fault_of), fixed offsets that collide, and a capacity that is proved to be too small.
inline stream_plan plan_streams(stream_problem const& p, stream_options options = {}) {
  stream_plan out;
  if (auto const wrong = fault_of(p); !wrong.empty()) return out.plan = detail::refused(wrong), out;
  std::int64_t work = 0;
  auto const solve = [&](detail::conflict_problem const& conflicts) {
    stream_plan s;
    s.plan =
        detail::plan_conflicts(conflicts, options.capacity, options.nodes - work, p.count() <= options.exact_limit);
    work += s.plan.work;
    if (!has_offsets(s.plan)) return s;
    for (std::uint32_t a = 0; a < p.count(); ++a)
      for (std::uint32_t b = 0; b < p.count(); ++b) detail::add_waits(p, s.plan.offsets, a, b, s.waits);
    return s;
  };
  detail::conflict_problem conflicts(p, options.price_bytes < stream_options::no_hand_over);
  out = solve(conflicts);
  if (!has_offsets(out.plan) || options.price_bytes <= 0 || out.waits.empty()) return out;

  auto const bound = out.plan.lower_bound_bytes;  // what holds with free hand-over
  __extension__ typedef __int128 wide;
  auto const costs_less = [&](stream_plan const& a, stream_plan const& b) {
    auto const cost = [&](stream_plan const& x) {
      return wide{x.plan.arena_bytes} + wide{options.price_bytes} * static_cast<wide>(x.waits.size());
    };
    return has_offsets(a.plan) && cost(a) < cost(b);
  };
  stream_plan const apart = solve(detail::conflict_problem(p, false));
  bool better = true;
  for (std::size_t tries = options.tries; better && tries > 0;) {
    better = false;
    for (std::size_t k = 0; k < out.waits.size() && tries > 0 && work < options.nodes && !better; ++k, --tries) {
      auto without = conflicts;
      without.forbid(out.waits[k].earlier, out.waits[k].later);
      auto fewer = solve(without);
      better = costs_less(fewer, out);
      if (better) out = std::move(fewer), conflicts = std::move(without);
    }
  }
  if (costs_less(apart, out)) out = apart;
  out.plan.work = work;
  out.plan.lower_bound_bytes = bound;
  out.plan.status = out.plan.arena_bytes == bound ? plan_status::optimal : plan_status::feasible;
  return out;
}

}}  // namespace neap::v0
