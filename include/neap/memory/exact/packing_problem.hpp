// A packing problem as the exact searches read it: records in an order of preference, time in sections, bytes in the
// largest unit that divides them all.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/records.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

struct packing_problem {
  std::vector<std::int64_t> size;       // rounded up to the grain
  std::vector<std::int64_t> slack;      // what the rounding added; empty: nothing
  std::int64_t grain = 1;               // all offsets are multiples of it: the alignment that all records share
  std::vector<std::int64_t> alignment;  // empty: all 1
  std::vector<std::int64_t> fixed;      // empty: none; -1: not fixed
  plain_vector<section_range> hull;     // from the first to the last section alive
  std::vector<std::uint32_t> twin;      // the first record with the same life, size and alignment
  std::uint32_t sections = 0;
  // Lives with holes, and conflicts that are no intervals, as bits; empty where lives are their hulls.
  std::vector<std::uint64_t> alive;  // record x section
  std::vector<std::uint64_t> meets;  // record x record

  std::size_t count() const { return size.size(); }
  bool plain() const { return alive.empty(); }
  std::size_t section_words() const { return (sections + 63) / 64; }
  std::size_t record_words() const { return (count() + 63) / 64; }

  bool is_fixed(std::uint32_t record) const { return !fixed.empty() && fixed[record] >= 0; }
  /// The least offset from `x` on that a record may have.
  std::int64_t aligned(std::int64_t x, std::uint32_t record) const {
    return alignment.empty() ? x : align_up(x, alignment[record]);
  }
  /// The capacity rounded up to the grain, for sums of rounded sizes.
  std::int64_t roof(std::int64_t capacity) const { return (capacity + grain - 1) / grain * grain; }
  /// Whether a record at an offset ends within the capacity: its own size counts there, not the rounded one.
  bool ends_within(std::uint32_t record, std::int64_t offset, std::int64_t capacity) const {
    return offset <= capacity - (size[record] - (slack.empty() ? 0 : slack[record]));
  }
  /// Whether a record lives in a section of its hull.
  bool is_alive(std::uint32_t record, std::uint32_t s) const {
    return plain() || (alive[record * section_words() + s / 64] >> (s % 64) & 1) != 0;
  }
};

/// Greatest common divisor of all bytes: offsets of canonical placements are multiples of it.
inline std::int64_t granularity(memory_problem const& p) {
  std::int64_t g = 0;
  for (std::size_t i = 0; i < p.count(); ++i) {
    if (!p.occupies(i)) continue;
    g = std::gcd(g, p.size[i]);
    if (p.alignment_of(i) > 1) g = std::gcd(g, p.alignment_of(i));
    if (p.fixed_of(i) > 0) g = std::gcd(g, p.fixed_of(i));
  }
  for (auto const& w : p.gaps) g = std::gcd(std::gcd(g, w.window_lower), w.window_upper);
  return g == 0 ? 1 : g;
}

/// Fills hulls, and bits where lives have holes.
void read_lives(memory_problem const& p, std::vector<std::uint32_t> const& records, packing_problem& out);

/// Finds the twins: same life, size and alignment, not fixed.
void find_twins(packing_problem& p);

/// The records of a list, all of which hold bytes at some time, in its order. O(n log n); O(n^2) where lives have holes.
packing_problem packing_problem_of(memory_problem const& p, std::vector<std::uint32_t> const& records,
                                   std::int64_t unit);

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/memory/exact/impl/packing_problem.ipp>
#endif
