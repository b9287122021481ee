// Several streams: records whose lives are ordered by happens-before, not by one clock.
//
// A life is a pair of vector clocks. `born[s]`: so many ops of stream s have certainly ended when the record is first
// touched; `dies[s]`: so many must have ended before its bytes are free. Record a may hand its bytes to b if
// a.dies <= b.born in every component; records neither of which may are in conflict. With one stream this is the
// interval [born[0], dies[0]). Conflicts form no interval graph, so the search works on a cover of them by cliques.
//
// A hand-over between records of different streams needs a wait (an event) on the device: it has a price in bytes.
#pragma once

#include <neap/memory/exact.hpp>
#include <neap/memory/greedy_by_size.hpp>
#include <neap/memory/records.hpp>
#include <neap/memory/search.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace neap::inline v0 {

struct stream_record {
  std::int64_t size = 0;
  std::int64_t alignment = 1;
  std::int32_t stream = 0;           ///< where it lives; hand-overs within a stream need no wait
  std::vector<std::int64_t> born{};  ///< a count of ended ops for each stream
  std::vector<std::int64_t> dies{};
};

/// Whether a's bytes may become b's.
constexpr bool precedes(stream_record const& a, stream_record const& b) {
  for (std::size_t s = 0; s < a.dies.size(); ++s)
    if (a.dies[s] > b.born[s]) return false;
  return true;
}

struct stream_wait {
  std::uint32_t earlier, later;  ///< records that share bytes, of different streams
  friend constexpr bool operator==(stream_wait const&, stream_wait const&) = default;
};

struct stream_plan {
  memory_plan plan;
  std::vector<stream_wait> waits;  ///< hand-overs across streams that the offsets make use of
};

struct stream_options {
  std::int64_t price_bytes = 0;  ///< a wait is worth it only if it saves this much; max: no hand-over across streams
  std::int64_t nodes = 1'000'000;
  std::size_t exact_limit = 400;  ///< beyond this many records: greedy by size only
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
inline search_ground<std::int64_t> ground_of(conflict_matrix const& meets, std::vector<std::int64_t> const& size,
                                             std::vector<std::int64_t> const& alignment) {
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
  search_ground<std::int64_t> g;
  g.size = size, g.alignment = alignment;
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

/// The least arena for sizes in conflict: greedy by size, then the search between the heaviest clique and that.
inline memory_plan plan_conflicts(conflict_matrix const& meets, std::vector<std::int64_t> const& size,
                                  std::vector<std::int64_t> const& alignment, std::int64_t nodes, bool search) {
  auto const n = meets.count;
  memory_plan plan;
  plan.offsets.assign(n, 0);
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return size[a] != size[b] ? size[a] > size[b] : a < b; });
  std::vector<forbidden> closed;
  for (std::size_t k = 0; k < n; ++k) {
    auto const i = order[k];
    closed.clear();
    for (std::size_t j = 0; j < k; ++j)
      if (auto const q = order[j]; meets(i, q))
        closed.push_back({plan.offsets[q] - size[i], plan.offsets[q] + size[q]});
    std::sort(closed.begin(), closed.end(), [](forbidden const& x, forbidden const& y) { return x.after < y.after; });
    plan.offsets[i] = best_fit(closed, size[i], alignment[i]);
    plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[i] + size[i]);
  }
  for (std::size_t i = 0; i < n; ++i) plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, size[i]);
  if (search && n > 0) {
    // In the order of size, so that the search prefers large records.
    conflict_matrix ordered(n);
    std::vector<std::int64_t> sizes, alignments;
    for (std::size_t a = 0; a < n; ++a) {
      sizes.push_back(size[order[a]]), alignments.push_back(alignment[order[a]]);
      for (std::size_t b = 0; b < a; ++b)
        if (meets(order[a], order[b])) ordered.set(a, b);
    }
    auto const ground = ground_of(ordered, sizes, alignments);
    for (std::uint32_t s = 0; s < ground.sections; ++s) {
      std::int64_t load = 0;
      for (std::size_t i = 0; i < n; ++i)
        if (ground.alive[i * ground.section_words() + s / 64] >> (s % 64) & 1) load += sizes[i];
      plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, load);
    }
    std::int64_t proved = plan.lower_bound_bytes, soft = proved - 1;
    bool first = true;
    while (plan.arena_bytes - soft > 1 && plan.work < nodes) {
      std::int64_t const target = first ? proved : soft + (plan.arena_bytes - soft) / 2;
      first = false;
      decision_search<std::int64_t, false> decide(ground, {});
      decide.start(target);
      auto const budget = std::max<std::int64_t>(1, (nodes - plan.work) / 4);
      auto const answer = decide.run([&](std::int64_t k) { return k >= budget; });
      plan.work += decide.nodes() + 1;
      if (answer == verdict::found) {
        plan.arena_bytes = 0;
        for (std::size_t k = 0; k < n; ++k) {
          plan.offsets[order[k]] = decide.offsets()[k];
          plan.arena_bytes = std::max(plan.arena_bytes, decide.offsets()[k] + sizes[k]);
        }
        continue;
      }
      if (answer == verdict::impossible) proved = std::max(proved, target + 1);
      soft = target;
    }
    plan.lower_bound_bytes = std::min(proved, plan.arena_bytes);
  }
  plan.status = plan.lower_bound_bytes == plan.arena_bytes ? plan_status::optimal : plan_status::feasible;
  return plan;
}

}  // namespace detail

/// Offsets for records on several streams: no two in conflict share a byte. Optimal where the search ends within its
/// nodes and waits are free; with a price, the cheaper of handing over across streams freely and not at all, so the
/// bound is that of free hand-over. O(n^2 streams) besides the search. Faulty records (sizes, clocks of different
/// lengths, a death not after the birth) are told as infeasible.
inline stream_plan plan_streams(std::span<stream_record const> records, stream_options options = {}) {
  auto const n = records.size();
  stream_plan out;
  std::vector<std::int64_t> size, alignment;
  for (std::size_t i = 0; i < n; ++i) {
    stream_record const& r = records[i];
    auto const refuse = [&](std::string_view what) {
      out.plan = detail::refused({what, static_cast<std::int64_t>(i)});
      return out;
    };
    if (r.born.size() != records[0].born.size() || r.dies.size() != r.born.size() || r.born.empty())
      return refuse("its clocks have another number of streams");
    if (precedes(r, r)) return refuse("its death is not after its birth");
    if (r.size < 0 || r.size > (std::int64_t{1} << 40) || r.alignment < 1 || r.alignment > (std::int64_t{1} << 40))
      return refuse("its size or alignment is negative or beyond 2^40");
    size.push_back(r.size), alignment.push_back(r.alignment);
  }
  auto const solve = [&](bool across) {
    detail::conflict_matrix meets(n);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (size[a] > 0 && size[b] > 0) {
          bool const apart = precedes(records[a], records[b]) || precedes(records[b], records[a]);
          if (!apart || (!across && records[a].stream != records[b].stream)) meets.set(a, b);
        }
    return detail::plan_conflicts(meets, size, alignment, options.nodes, n <= options.exact_limit);
  };
  auto const waits_of = [&](memory_plan const& plan) {
    std::vector<stream_wait> waits;
    for (std::uint32_t a = 0; a < n; ++a)
      for (std::uint32_t b = 0; b < n; ++b)
        if (a != b && records[a].stream != records[b].stream && size[a] > 0 && size[b] > 0 &&
            precedes(records[a], records[b]) && plan.offsets[a] < plan.offsets[b] + size[b] &&
            plan.offsets[b] < plan.offsets[a] + size[a])
          waits.push_back({a, b});
    return waits;
  };
  out.plan = solve(true);
  out.waits = waits_of(out.plan);
  if (options.price_bytes <= 0 || out.waits.empty()) return out;
  memory_plan apart = solve(false);
  std::int64_t price = 0;
  if (__builtin_mul_overflow(options.price_bytes, static_cast<std::int64_t>(out.waits.size()), &price))
    price = std::numeric_limits<std::int64_t>::max();
  if (apart.arena_bytes - out.plan.arena_bytes < price) {
    apart.lower_bound_bytes = out.plan.lower_bound_bytes;  // what holds with free hand-over
    apart.status = apart.arena_bytes == apart.lower_bound_bytes ? plan_status::optimal : plan_status::feasible;
    apart.work += out.plan.work;
    out.plan = std::move(apart);
    out.waits.clear();
  }
  return out;
}

}  // namespace neap::inline v0
