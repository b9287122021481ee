// Greedy by size (Pisarchyk and Lee 2020, arXiv 2001.03288, as AITemplate and TFLite have it): the largest record
// first, each into the smallest gap that holds it among the records it meets in time; the gap below the lowest counts.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/bounds.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// A stretch of addresses in which a record cannot start: from (exclusive) to (inclusive upper end not included).
struct forbidden {
  std::int64_t after, until;  // starts s with after < s < until collide
};

/// Where record `i` cannot start because of record `j` at `at`: one stretch per pair of pieces alive together.
template <class F>
constexpr void for_each_forbidden(memory_problem const& p, std::size_t i, std::size_t j, std::int64_t at, F&& f) {
  if (p.upper[i] <= p.lower[j] || p.upper[j] <= p.lower[i]) return;
  p.for_each_piece(j, [&](std::int64_t jl, std::int64_t ju, std::int64_t ja, std::int64_t jb) {
    p.for_each_piece(i, [&](std::int64_t il, std::int64_t iu, std::int64_t ia, std::int64_t ib) {
      if (il < ju && jl < iu) f(forbidden{at + ja - ib, at + jb - ia});
    });
  });
}

/// Best fit for record `i` between stretches sorted by `after`: the start in the smallest gap, ties to the lowest.
template <class List>
constexpr std::int64_t best_fit(List const& closed, std::int64_t size, std::int64_t alignment) {
  std::int64_t free_from = 0, best = -1, best_gap = 0;
  for (auto const& c : closed) {
    std::int64_t const start = align_up(free_from, alignment);
    std::int64_t const gap = c.after + size - free_from;  // the bytes between the end of one and the begin of the next
    if (start <= c.after && (best < 0 || gap < best_gap)) best = start, best_gap = gap;
    free_from = std::max(free_from, c.until);
  }
  return best >= 0 ? best : align_up(free_from, alignment);
}

}  // namespace detail

/// Records as in the header's first lines; fixed records are placed before all others. Alignment and gaps are kept.
/// O(n^2) time, O(n) memory. Fails (infeasible) only where records are faulty or fixed ones collide.
struct greedy_by_size {
  constexpr memory_plan operator()(memory_problem const& p) const {
    if (auto const wrong = fault_of(p); !wrong.empty()) return detail::refused(wrong);
    auto const n = p.count();
    plain_vector<std::uint32_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    detail::sort_list(order, [&](std::uint32_t a, std::uint32_t b) {
      bool const fa = p.fixed_of(a) != any_offset, fb = p.fixed_of(b) != any_offset;
      if (fa != fb) return fa;
      if (p.size[a] != p.size[b]) return p.size[a] > p.size[b];
      return a < b;
    });
    struct lying {
      std::int64_t begin, end, lower, upper;
      std::uint32_t record;
    };
    plain_vector<lying> placed;  // by begin, ties in order of placement
    placed.reserve(n);
    std::vector<std::int64_t> offsets(n, 0);
    plain_vector<detail::forbidden> closed;
    for (auto i : order) {
      if (p.fixed_of(i) != any_offset) offsets[i] = p.fixed_of(i);
      if (p.lower[i] >= p.upper[i] || (p.size[i] == 0 && p.fixed_of(i) != any_offset)) continue;
      // Empty sizes are placed like others, last: AITemplate's offsets.
      closed.clear();
      for (auto const& q : placed) {
        if (q.lower >= p.upper[i] || p.lower[i] >= q.upper) continue;
        if (p.gap_begin.empty()) closed.push_back({q.begin - p.size[i], q.end});
        else detail::for_each_forbidden(p, i, q.record, q.begin, [&](detail::forbidden f) { closed.push_back(f); });
      }
      if (!p.gap_begin.empty())
        detail::sort_list(closed,
                          [](detail::forbidden const& x, detail::forbidden const& y) { return x.after < y.after; });
      if (p.fixed_of(i) != any_offset) {
        for (auto const& c : closed)
          if (c.after < offsets[i] && offsets[i] < c.until)
            return detail::refused({"it collides with another fixed record", i});
      } else {
        offsets[i] = detail::best_fit(closed, p.size[i], p.alignment_of(i));
      }
      lying const entry{offsets[i], offsets[i] + p.size[i], p.lower[i], p.upper[i], i};
      placed.insert(std::upper_bound(placed.begin(), placed.end(), entry,
                                     [](lying const& x, lying const& y) { return x.begin < y.begin; }),
                    entry);
    }
    return detail::finished(p, static_cast<std::vector<std::int64_t>&&>(offsets), load_lower_bound(p));
  }
};

/// Every record its own place, in order: no reuse. The arena without planning.
struct naive {
  constexpr memory_plan operator()(memory_problem const& p) const {
    if (auto const wrong = fault_of(p); !wrong.empty()) return detail::refused(wrong);
    std::vector<std::int64_t> offsets(p.count(), 0);
    std::int64_t at = 0;
    for (std::size_t i = 0; i < p.count(); ++i)
      if (p.fixed_of(i) != any_offset) at = std::max(at, p.fixed_of(i) + p.size[i]);  // the others lie above all fixed
    for (std::size_t i = 0; i < p.count(); ++i) {
      if (p.fixed_of(i) != any_offset) {
        offsets[i] = p.fixed_of(i);
        continue;
      }
      offsets[i] = detail::align_up(at, p.alignment_of(i));
      at = offsets[i] + p.size[i];
    }
    if (!p.fixed.empty()) {  // fixed ones may collide: let the checked planner say which
      memory_plan fixed_only = greedy_by_size{}(p);
      if (!has_offsets(fixed_only)) return fixed_only;
    }
    return detail::finished(p, static_cast<std::vector<std::int64_t>&&>(offsets), load_lower_bound(p));
  }
};

}}  // namespace neap::v0
