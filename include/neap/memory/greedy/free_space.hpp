// Which bytes are taken during which sections of time, and the lowest free place for a record over its whole life.
//
// A segment tree over sections (memory/sections.hpp). Every node has two sorted lists of disjoint byte ranges, merged
// where they touch: `cover`, what is taken throughout the node's sections, and `under`, what is taken anywhere in them.
// A life is O(log n) nodes; it is free where the `under` of these and the `cover` of the nodes above them are free, and
// the lowest common free place is found by leapfrog: each list in turn moves the candidate up to its own next gap.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/records.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class free_space {
  struct byte_range {
    std::int64_t begin, end;
  };
  struct node {
    plain_vector<byte_range> cover, under;
  };
  struct cursor {
    byte_range const *at, *end;
    std::int64_t first, last;  // the bytes of the record that must be free here
  };

  /// f(node) for the fewest nodes that make up `when`, g(node) for all nodes above them.
  template <class F, class G>
  constexpr void visit(section_range when, F&& f, G&& g) {
    for (std::uint32_t l = when.begin + leaves_, r = when.end + leaves_; l < r; l /= 2, r /= 2) {
      if (l & 1) f(nodes_[l++]);
      if (r & 1) f(nodes_[--r]);
    }
    std::uint32_t i = when.begin + leaves_, j = when.end - 1 + leaves_;
    for (std::uint32_t level = 1; i > 1; ++level) {
      i /= 2, j /= 2;
      std::uint32_t const first = (i << level) - leaves_, last = ((j + 1) << level) - leaves_;
      if (i == j) {
        if (first < when.begin || last > when.end) g(nodes_[i]);
      } else {
        if (first < when.begin) g(nodes_[i]);
        if (last > when.end) g(nodes_[j]);
      }
    }
  }

  static constexpr void add(plain_vector<byte_range>& list, std::int64_t begin, std::int64_t end) {
    auto const first = std::lower_bound(list.begin(), list.end(), begin,
                                        [](byte_range const& r, std::int64_t at) { return r.end < at; });
    if (first == list.end() || first->begin > end) {
      list.insert(first, {begin, end});
      return;
    }
    if (first->begin <= begin && first->end >= end) return;
    auto last = first + 1;
    std::int64_t top = std::max(end, first->end);
    for (; last != list.end() && last->begin <= top; ++last) top = std::max(top, last->end);
    *first = {std::min(begin, first->begin), top};
    list.erase(first + 1, last);
  }

 public:
  /// Empties it, for sections [0, sections). Storage is kept.
  constexpr void reset(std::uint32_t sections) {
    leaves_ = std::bit_ceil(std::max(sections, 1u));
    for (std::size_t i = 0; i < nodes_.size() && i < 2 * std::size_t{leaves_}; ++i)
      nodes_[i].cover.clear(), nodes_[i].under.clear();
    if (nodes_.size() < 2 * std::size_t{leaves_}) nodes_.resize(2 * std::size_t{leaves_});
  }

  /// Takes bytes [begin, end) during `when` (not empty), whether or not they are free.
  constexpr void take(section_range when, std::int64_t begin, std::int64_t end) {
    visit(
        when,
        [&](node& inside) {
          add(inside.cover, begin, end);
          add(inside.under, begin, end);
        },
        [&](node& above) { add(above.under, begin, end); });
  }

  /// A question is a row of these, then lowest(): the record needs its bytes [begin, end) during `when` (not empty).
  constexpr void need(section_range when, std::int64_t begin, std::int64_t end) {
    auto const list = [&](plain_vector<byte_range> const& taken) {
      if (!taken.empty()) asked_.push_back({taken.data(), taken.data() + taken.size(), begin, end});
    };
    visit(
        when, [&](node const& inside) { list(inside.under); }, [&](node const& above) { list(above.cover); });
  }

  /// The lowest offset >= `from` that is a multiple of `alignment` and leaves every byte needed free. Ends the question.
  constexpr std::int64_t lowest(std::int64_t alignment = 1, std::int64_t from = 0) {
    std::int64_t x = align_up(from, alignment);
    for (std::size_t k = 0; k < asked_.size();) {
      cursor c = asked_[k];
      while (c.at != c.end && c.at->end <= x + c.first) ++c.at;
      if (c.at == c.end || c.at->begin >= x + c.last) {
        asked_[k++].at = c.at;
        continue;
      }
      do {
        x = align_up(c.at->end - c.first, alignment);
        while (c.at != c.end && c.at->end <= x + c.first) ++c.at;
      } while (c.at != c.end && c.at->begin < x + c.last);
      asked_[k] = asked_[0];  // who stood in the way once is asked first
      asked_[0] = c;
      k = k == 0 ? 1 : 0;
    }
    asked_.clear();
    return x;
  }

 private:
  std::uint32_t leaves_ = 1;
  std::vector<node> nodes_;
  plain_vector<cursor> asked_;
};

}}}  // namespace neap::v0::detail
