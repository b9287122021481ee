// What memory planners read: any range of records, by projection, as flat columns.
//
// A record is any type for which lower, upper and size are found: as members of those names, or as functions
// `usage_lower(r)`, `usage_upper(r)`, `usage_size(r)` beside it. Alignment, fixed offset and gaps are optional; a type
// without them costs nothing for them. The columns are what every planner works on, so a planner is written once.
#pragma once

#include <neap/plan/memory_plan.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

template <class R>
constexpr std::int64_t lower_of(R const& r) {
  if constexpr (requires { usage_lower(r); }) return static_cast<std::int64_t>(usage_lower(r));
  else return static_cast<std::int64_t>(r.lower);
}
template <class R>
constexpr std::int64_t upper_of(R const& r) {
  if constexpr (requires { usage_upper(r); }) return static_cast<std::int64_t>(usage_upper(r));
  else return static_cast<std::int64_t>(r.upper);
}
template <class R>
constexpr std::int64_t size_of(R const& r) {
  if constexpr (requires { usage_size(r); }) return static_cast<std::int64_t>(usage_size(r));
  else return static_cast<std::int64_t>(r.size);
}

}  // namespace detail

/// A type that says when it lives (half-open) and how many bytes it needs.
template <class R>
concept usage = (
                    requires(R const& r) { usage_lower(r); } || requires(R const& r) { r.lower; }) &&
                (
                    requires(R const& r) { usage_upper(r); } || requires(R const& r) { r.upper; }) &&
                (
                    requires(R const& r) { usage_size(r); } || requires(R const& r) { r.size; });

template <class Range>
concept usage_range = requires(Range const& r) {
  std::begin(r) != std::end(r);
  std::size(r);
  requires usage<std::remove_cvref_t<decltype(*std::begin(r))>>;
};

/// Records as columns. Made implicitly from any range of records: `planner(my_records)`. O(records).
struct memory_problem {
  std::vector<std::int64_t> lower, upper, size;
  std::vector<std::int64_t> alignment;   ///< empty: all 1
  std::vector<std::int64_t> fixed;       ///< empty: all any_offset
  std::vector<live_gap> gaps;            ///< of record i: gaps[gap_begin[i] .. gap_begin[i + 1])
  std::vector<std::uint32_t> gap_begin;  ///< empty: no gaps

  memory_problem() = default;

  template <usage_range Range>
    requires(!std::same_as<Range, memory_problem>)
  constexpr memory_problem(Range const& records) {
    using record = std::remove_cvref_t<decltype(*std::begin(records))>;
    auto const n = static_cast<std::size_t>(std::size(records));
    lower.reserve(n), upper.reserve(n), size.reserve(n);
    for (auto const& r : records) {
      lower.push_back(detail::lower_of(r));
      upper.push_back(detail::upper_of(r));
      size.push_back(detail::size_of(r));
    }
    if constexpr (requires(record const& r) { r.alignment; }) {
      bool any = false;
      for (auto const& r : records) any |= r.alignment != 1;
      if (any)
        for (auto const& r : records) alignment.push_back(static_cast<std::int64_t>(r.alignment));
    }
    if constexpr (requires(record const& r) { r.offset; }) {
      bool any = false;
      for (auto const& r : records) any |= r.offset != any_offset;
      if (any)
        for (auto const& r : records) fixed.push_back(static_cast<std::int64_t>(r.offset));
    }
    if constexpr (requires(record const& r) { r.gaps; }) {
      bool any = false;
      for (auto const& r : records) any |= !r.gaps.empty();
      if (any) {
        gap_begin.push_back(0);
        for (auto const& r : records) {
          for (live_gap const& g : r.gaps) gaps.push_back(g);
          gap_begin.push_back(static_cast<std::uint32_t>(gaps.size()));
        }
      }
    }
  }

  constexpr std::size_t count() const { return size.size(); }
  constexpr std::int64_t alignment_of(std::size_t i) const { return alignment.empty() ? 1 : alignment[i]; }
  constexpr std::int64_t fixed_of(std::size_t i) const { return fixed.empty() ? any_offset : fixed[i]; }
  constexpr bool has_windows() const {
    for (auto const& g : gaps)
      if (g.window_upper > g.window_lower) return true;
    return false;
  }
  /// Whether record i needs memory at any time: others have no neighbours, whatever their offset.
  constexpr bool occupies(std::size_t i) const { return size[i] > 0 && upper[i] > lower[i]; }

  /// Whether its gaps leave it any time at which it holds bytes.
  constexpr bool ever_holds(std::size_t i) const {
    bool some = false;
    for_each_piece(i, [&](auto...) { some = true; });
    return some;
  }

  /// The stretches of life of record i in which it holds one range of its own bytes:
  /// f(lower, upper, first byte, end byte) for each, in order of time, empty ones left out.
  template <class F>
  constexpr void for_each_piece(std::size_t i, F&& f) const {
    if (!occupies(i)) return;
    std::int64_t at = lower[i];
    if (!gap_begin.empty())
      for (std::size_t k = gap_begin[i]; k < gap_begin[i + 1]; ++k) {
        live_gap const& g = gaps[k];
        if (at < g.lower) f(at, g.lower, std::int64_t{0}, size[i]);
        if (g.window_lower < g.window_upper) f(g.lower, g.upper, g.window_lower, g.window_upper);
        at = g.upper;
      }
    if (at < upper[i]) f(at, upper[i], std::int64_t{0}, size[i]);
  }
};

namespace detail {

/// Of each record the pool that it requires; empty if their type has none, or none requires one.
template <usage_range Range>
constexpr std::vector<std::int32_t> pools_of(Range const& records) {
  std::vector<std::int32_t> pools;
  if constexpr (requires { std::begin(records)->pool; }) {
    bool any = false;
    for (auto const& r : records) any |= r.pool != -1;
    if (any)
      for (auto const& r : records) pools.push_back(static_cast<std::int32_t>(r.pool));
  }
  return pools;
}

/// What a record of any type has of a usage_record's properties, for planners that fold records before they plan.
template <class To = usage_record, usage R>
To projected(R const& r) {
  To out;
  out.lower = lower_of(r), out.upper = upper_of(r), out.size = size_of(r);
  if constexpr (requires { r.alignment; }) out.alignment = static_cast<std::int64_t>(r.alignment);
  if constexpr (requires { r.offset; }) out.offset = static_cast<std::int64_t>(r.offset);
  if constexpr (requires { r.pool; }) out.pool = static_cast<std::int32_t>(r.pool);
  if constexpr (requires { r.group; }) out.group = static_cast<std::int32_t>(r.group);
  if constexpr (requires { r.gaps; }) out.gaps.assign(std::begin(r.gaps), std::end(r.gaps));
  return out;
}

constexpr std::int64_t align_up(std::int64_t x, std::int64_t a) { return a <= 1 ? x : (x + a - 1) / a * a; }

}  // namespace detail

namespace detail {

/// What is wrong with one record's bytes, or nothing. Adds what it may reach to `total`, which stays below 2^62.
constexpr std::string_view wrong_bytes(std::int64_t size, std::int64_t alignment, std::int64_t fixed,
                                       std::int64_t& total) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
  if (size < 0) return "its size is negative";
  if (alignment < 1) return "its alignment is below 1";
  if (fixed < any_offset) return "its fixed offset is negative";
  if (fixed > 0 && fixed % alignment != 0) return "its fixed offset is not aligned";
  if (size > most || alignment > most || fixed > most) return "its bytes are beyond 2^60";
  if ((total += size + alignment + (fixed > 0 ? fixed : 0)) > 4 * most || total < 0)
    return "the bytes of the records up to here overflow";
  return {};
}

}  // namespace detail

/// What is wrong with the records, and with which, or an empty fault: lives that end before they begin,
/// negative sizes, alignments below 1, fixed offsets that are negative or not aligned, gaps out of order or outside the
/// life, windows outside the record, and totals that could overflow 64 bits. After it has passed, no arithmetic of any
/// planner overflows. O(records + gaps).
constexpr plan_fault fault_of(memory_problem const& p) {
  auto const bad = [](std::size_t i, std::string_view what) { return plan_fault{what, static_cast<std::int64_t>(i)}; };
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < p.count(); ++i) {
    if (p.upper[i] < p.lower[i]) return bad(i, "its life ends before it begins");
    if (p.lower[i] < -most || p.upper[i] > most) return bad(i, "its life is beyond 2^60");
    if (auto const wrong = detail::wrong_bytes(p.size[i], p.alignment_of(i), p.fixed_of(i), total); !wrong.empty())
      return bad(i, wrong);
    if (p.gap_begin.empty()) continue;
    std::int64_t at = p.lower[i];
    for (std::size_t k = p.gap_begin[i]; k < p.gap_begin[i + 1]; ++k) {
      live_gap const& g = p.gaps[k];
      if (g.lower < at || g.upper <= g.lower || g.upper > p.upper[i])
        return bad(i, "a gap is empty, out of order or outside the life");
      if (g.window_lower < 0 || g.window_upper < g.window_lower || g.window_upper > p.size[i])
        return bad(i, "a gap's window is outside the record");
      at = g.upper;
    }
  }
  return {};
}

namespace detail {

/// Where the records end: the arena that offsets need.
constexpr std::int64_t end_of(memory_problem const& p, std::vector<std::int64_t> const& offsets) {
  std::int64_t top = 0;
  for (std::size_t i = 0; i < p.count(); ++i)
    if ((p.occupies(i) || p.fixed_of(i) != any_offset) && offsets[i] + p.size[i] > top) top = offsets[i] + p.size[i];
  return top;
}

constexpr memory_plan refused(plan_fault why) {
  memory_plan plan;
  plan.status = plan_status::infeasible;
  plan.why = why;
  return plan;
}

/// What a plan without offsets has of records, in the numbers of another list: record i is record original[i] there.
template <class Indices>
constexpr void renumber_faults(memory_plan& plan, Indices const& original) {
  for (auto* r : {&plan.why.record, &plan.why.other})
    if (*r >= 0) *r = static_cast<std::int64_t>(original[static_cast<std::size_t>(*r)]);
  for (auto& i : plan.conflict) i = original[i];
}

}  // namespace detail

}}  // namespace neap::v0
