// A packing problem as the planar search reads it (planar_search.hpp): its boundaries, forth and back in time.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/exact/packing_problem.hpp>
#include <neap/memory/guess/set_sums.hpp>
#include <neap/memory/guess/subsets.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

/// The numbers of the planar search. bench/memory_planted.cpp measures what a change is worth.
struct planar_policy {
  static constexpr std::size_t most_items = 31;  ///< that end or begin at a boundary: sets of them are 32 bits
  static constexpr std::size_t most_sets = std::size_t{1} << 12;  ///< of what begins, of which the sums are kept
  static constexpr double least_used = 6;                 ///< bytes used for each free one; else other searches win
  static constexpr std::size_t first_width = 16;          ///< ways kept at a boundary by the first searches
  static constexpr std::size_t most_widenings = 16;       ///< doublings of that
  static constexpr std::size_t searches_of_width = 8;     ///< two from the ends, the others from sections between
  static constexpr std::size_t least_continuations = 12;  ///< of one way, counted in complete assignments
  static constexpr double most_block_sets = 8192;     ///< sets of blocks assigned to one stretch, the smallest first
  static constexpr std::size_t most_guesses = 256;    ///< stretches for the blocks of a way
  static constexpr std::ptrdiff_t most_unknown = 8;   ///< sets that leave free bytes of which nothing is known
  static constexpr double unknown_chance = 1.0 / 16;  ///< of such free bytes
  static constexpr double rarest_chance = 1.0 / 256;  ///< of an assignment among those of its way
};

/// A boundary and the section behind it, in one direction of time.
struct planar_boundary {
  std::vector<std::uint32_t> ending, beginning;  // records
  std::int64_t free = 0;                         // bytes in the section
  std::int64_t falls = 0, rises = 0;             // by so much at its end, at its begin
  // Made by sum_up(): of all sets of what begins, or of the smallest, as there is room; the same by the records in a set.
  set_sums sums;
  std::vector<set_sums> by_count;

  void sum_up(packing_problem const& problem) {
    if (!sums.empty()) return;
    auto const n = beginning.size();
    plain_vector<set_sum> all{{0, 0}};
    for (std::size_t k = 1; k <= n && static_cast<double>(all.size()) + choices(n, k) <= planar_policy::most_sets; ++k)
      for_each_set(n, k, [&](std::uint32_t set) {
        std::int64_t sum = 0;
        for_each_member(set, [&](std::size_t i) { sum += problem.size[beginning[i]]; });
        all.push_back({sum, set});
      });
    std::vector<plain_vector<set_sum>> counted(n + 1);
    for (auto const& x : all) counted[static_cast<std::size_t>(std::popcount(x.set))].push_back(x);
    for (auto& in : counted) by_count.emplace_back(std::move(in));
    sums = set_sums(std::move(all));
  }
  /// The bytes in which one sum of so many records that begin is to be expected, near `sum`.
  double bytes_a_sum(std::size_t count, std::int64_t sum) const {
    auto const& in = by_count[count];
    auto const near = in.from(sum + sum / 2 + 1) - in.from(sum - sum / 2);
    return static_cast<double>(sum / 2 * 2 + 1) / static_cast<double>(std::max<std::ptrdiff_t>(near, 1));
  }
};

/// Boundaries in direction 0, forth in time, and 1, back; each counts sections from its own begin.
class planar_problem {
 public:
  explicit planar_problem(packing_problem const& problem) : problem_(problem) {}

  /// Begins anew; false if that is not for this search.
  bool read(std::int64_t capacity) {
    if (!problem_.free_offsets() || problem_.sections < 2) return false;
    std::vector<std::int64_t> free(problem_.sections, capacity);
    double used = 0, unused = 0;
    for (std::uint32_t i = 0; i < problem_.count(); ++i)
      for (auto s = problem_.hull[i].begin; s < problem_.hull[i].end; ++s)
        free[s] -= problem_.size[i], used += static_cast<double>(problem_.size[i]);
    for (auto bytes : free) {
      if (bytes < 0) return false;
      unused += static_cast<double>(bytes);
    }
    if (planar_policy::least_used * unused > used || !read(0, free)) return false;
    std::reverse(free.begin(), free.end());
    return read(1, free);
  }

  packing_problem const& records() const { return problem_; }
  std::uint32_t sections() const { return problem_.sections; }
  planar_boundary& boundary(std::size_t direction, std::uint32_t s) { return boundaries_[direction][s]; }
  planar_boundary const& boundary(std::size_t direction, std::uint32_t s) const { return boundaries_[direction][s]; }
  std::uint32_t begin_of(std::size_t direction, std::uint32_t i) const {
    return direction == 0 ? problem_.hull[i].begin : problem_.sections - problem_.hull[i].end;
  }
  std::uint32_t end_of(std::size_t direction, std::uint32_t i) const {
    return direction == 0 ? problem_.hull[i].end : problem_.sections - problem_.hull[i].begin;
  }
  /// Sections between the ends to begin at, the best first: such without free bytes, then others; each the middle, the
  /// quarters and so on. At least one.
  std::vector<std::uint32_t> inner_starts(std::size_t direction) const {
    std::vector<std::uint32_t> starts;
    for (bool full : {true, false})
      for (std::uint32_t step = std::bit_ceil(sections()); step > 1; step /= 2)
        for (std::uint32_t s = step / 2; s + 1 < sections(); s += step)
          if ((boundary(direction, s).free == 0) == full) starts.push_back(s);
    if (starts.empty()) starts.push_back(0);
    return starts;
  }

 private:
  bool read(std::size_t direction, std::vector<std::int64_t> const& free) {
    auto& all = boundaries_[direction];
    all.assign(sections(), planar_boundary{});
    for (std::uint32_t i = 0; i < problem_.count(); ++i) {
      all[begin_of(direction, i)].beginning.push_back(i);
      if (auto const end = end_of(direction, i); end < sections()) all[end].ending.push_back(i);
    }
    for (std::uint32_t s = 0; s < sections(); ++s) {
      auto& b = all[s];
      b.free = free[s];
      if (s + 1 < sections()) b.falls = std::max<std::int64_t>(0, free[s] - free[s + 1]);
      if (s > 0) b.rises = std::max<std::int64_t>(0, free[s] - free[s - 1]);
      if (std::max(b.beginning.size(), b.ending.size()) > planar_policy::most_items) return false;
    }
    return true;
  }

  packing_problem const& problem_;
  std::array<std::vector<planar_boundary>, 2> boundaries_;
};

}  // namespace neap::inline v0::detail
