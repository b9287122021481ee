// Time as planners see it: the moments that matter are the maximal sets of records alive together (the maximal cliques
// of the interval graph); between two of them nothing new can collide. A stretch of life is a range of sections.
//
//   time      0 1 2 3 4 5 6
//   a         |-----|
//   b             |---------|        sections: {a, b} = 0, {b, c} = 1
//   c                   |-|          a = [0, 1), b = [0, 2), c = [1, 2)
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/records.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

struct section_range {
  std::uint32_t begin = 0, end = 0;  // half-open
  friend constexpr bool operator==(section_range const&, section_range const&) = default;
};
constexpr bool meet(section_range a, section_range b) { return a.begin < b.end && b.begin < a.end; }
/// Sorts records by where their lives begin, then by where they end, then by number.
template <class Lives>
constexpr void sort_by_life(std::vector<std::uint32_t>& records, Lives const& lives) {
  detail::sort_list(records, [&](std::uint32_t a, std::uint32_t b) {
    section_range const x = lives[a], y = lives[b];
    return x.begin != y.begin ? x.begin < y.begin : x.end != y.end ? x.end < y.end : a < b;
  });
}

struct time_stretch {
  std::int64_t lower, upper;  // half-open, not empty
};

struct sectioned {
  plain_vector<section_range> ranges;  // of each stretch given
  std::uint32_t count = 0;             // sections in all
};

/// Sections of stretches. O(n) where the clock is dense, O(n log n) elsewhere.
template <class List>
constexpr sectioned cut_into_sections(List const& stretches) {
  sectioned out;
  auto const n = stretches.size();
  out.ranges.assign(n, section_range{});
  if (n == 0) return out;
  std::int64_t first = stretches[0].lower, last = stretches[0].upper;
  for (auto const& s : stretches) first = std::min(first, s.lower), last = std::max(last, s.upper);
  bool const dense = static_cast<std::uint64_t>(last - first) < 4 * n + 64;
  plain_vector<std::int64_t> ticks;
  if (!dense) {
    ticks.reserve(2 * n);
    for (auto const& s : stretches) ticks.push_back(s.lower), ticks.push_back(s.upper);
    detail::sort_list(ticks);
    ticks.erase(std::unique(ticks.begin(), ticks.end()), ticks.end());
  }
  auto const tick = [&](std::int64_t t) {
    return dense ? static_cast<std::size_t>(t - first)
                 : static_cast<std::size_t>(std::lower_bound(ticks.begin(), ticks.end(), t) - ticks.begin());
  };
  auto const clock = dense ? static_cast<std::size_t>(last - first) + 1 : ticks.size();
  constexpr std::uint32_t starts = 1, ends = 2;
  plain_vector<std::uint32_t> opened(clock), closed(clock);
  for (auto const& s : stretches) opened[tick(s.lower)] |= starts, closed[tick(s.upper)] |= ends;
  bool fresh = true;  // a stretch ended since the last section opened: the next start opens another
  for (std::size_t t = 0; t < clock; ++t) {
    if (closed[t] != 0) closed[t] = out.count, fresh = true;
    if (opened[t] != 0) {
      if (fresh) ++out.count, fresh = false;
      opened[t] = out.count - 1;
    }
  }
  for (std::size_t i = 0; i < n; ++i)
    out.ranges[i] = {opened[tick(stretches[i].lower)], closed[tick(stretches[i].upper)]};
  return out;
}

/// The largest value over ranges of an array: a tournament tree. O(n) to build, O(log n) a question.
class range_maximum {
 public:
  constexpr explicit range_maximum(std::vector<std::int64_t> const& values) : n_(values.size()), tree_(2 * n_, 0) {
    for (std::size_t i = 0; i < n_; ++i) tree_[n_ + i] = values[i];
    for (std::size_t i = n_; i-- > 1;) tree_[i] = std::max(tree_[2 * i], tree_[2 * i + 1]);
  }
  constexpr std::int64_t operator()(std::size_t begin, std::size_t end) const {
    std::int64_t best = 0;  // values are loads, never negative
    for (begin += n_, end += n_; begin < end; begin /= 2, end /= 2) {
      if (begin & 1) best = std::max(best, tree_[begin++]);
      if (end & 1) best = std::max(best, tree_[--end]);
    }
    return best;
  }

 private:
  std::size_t n_;
  std::vector<std::int64_t> tree_;
};

}}}  // namespace neap::v0::detail
