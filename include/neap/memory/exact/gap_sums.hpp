// The records that live in one section only, as what they are good for: to fill the gaps that longer records leave there.
// Which of them lies in which gap is left open; what is kept is which sets of them the gaps so far may hold.
//
//     |--long--|           gaps of 0, 5 and, at the top, 4 bytes; records of 2, 3 and 4 bytes: the second gap holds
//     | ~~~~~~~~~~~~|      {2, 3}, or {4} where a byte may be wasted. {2, 3} and {4} are kept, not {2} nor {3}: what fits
//     |---long------|      above {2} fits above {2, 3}.
//
// Gaps in one section are told from the lowest to the highest. Sets that are part of another one are forgotten: the
// larger leaves less to be placed, and what the smaller one leaves goes into the same gaps as before.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/memory/exact/failed_states.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap::inline v0::detail {

/// The gaps of one section. States are numbered; 0 is that of no gap. A state's bytes are relative to the last gap's end.
template <class Unit>
class gap_sums {
 public:
  static constexpr std::size_t most_records = 10;  // sets of them are listed
  static constexpr std::uint32_t none = 0xffffffffu;

  /// Records of these sizes, at most `most_records`; all gaps together may waste `slack`.
  constexpr void start(std::vector<Unit> const& sizes, Unit slack) {
    slack_ = slack;
    auto const n = sizes.size();
    sums_.assign(std::size_t{1} << n, Unit{0});
    for (std::uint32_t set = 1; set < sums_.size(); ++set)
      sums_[set] = sums_[set & (set - 1)] + sizes[static_cast<std::size_t>(std::countr_zero(set))];
    after_equal_.assign(n, 0);
    for (std::size_t i = 1; i < n; ++i) after_equal_[i] = sizes[i] == sizes[i - 1];
    clear();
  }
  /// Forgets all states but the first.
  constexpr void clear() {
    states_.clear(), by_content_.assign(64, none), next_.assign(64, link{});
    links_ = 0;
    find_or_add(Unit{0}, {0});
  }
  constexpr std::size_t state_count() const { return states_.size(); }

  /// The largest gap that may come next.
  constexpr Unit largest(std::uint32_t from) const { return states_[from].ranges.back().last; }
  /// The least gap of at least `gap` that may come next; negative if there is none.
  constexpr Unit next_gap(std::uint32_t from, Unit gap) const {
    auto const& ranges = states_[from].ranges;
    auto const at = std::partition_point(ranges.begin(), ranges.end(), [&](range const& r) { return r.last < gap; });
    return at == ranges.end() ? Unit{-1} : std::max(gap, at->first);
  }
  /// The least gap of at least `gap` that may come next and is filled to the byte; negative if there is none.
  constexpr Unit next_filled(std::uint32_t from, Unit gap) const {
    auto const& filled = states_[from].filled;
    auto const at = std::lower_bound(filled.begin(), filled.end(), gap);
    return at == filled.end() ? Unit{-1} : *at;
  }
  /// The state behind a gap that may come next.
  constexpr std::uint32_t behind(std::uint32_t from, Unit gap) {
    if (2 * (links_ + 1) > next_.size()) more_links();
    auto& at = next_[place(next_, from, gap)];
    if (at.from == none) {
      ++links_;
      at.from = from, at.gap = gap;
      at.to = follow(from, gap);
    }
    return at.to;
  }
  /// Which records, as bits, each of these gaps holds, given from the lowest on; each could come next in its turn. What
  /// is in none of them goes above the last. O(sets of the states on the way) for each gap.
  constexpr std::vector<std::uint32_t> deal(std::vector<Unit> const& gaps) {
    std::vector<std::uint32_t> way{0};
    for (Unit gap : gaps) way.push_back(behind(way.back(), gap));
    std::vector<std::uint32_t> held(gaps.size(), 0);
    std::uint32_t set = states_[way.back()].used.front();
    for (std::size_t k = gaps.size(); k-- > 0;)
      for (auto before : states_[way[k]].used) {
        if ((before & ~set) != 0) continue;
        Unit const bytes = sums_[set] - sums_[before];
        if (bytes > gaps[k] || gaps[k] - bytes > slack_left(states_[way[k]].gaps, before)) continue;
        held[k] = set & ~before, set = before;
        break;
      }
    return held;
  }

 private:
  struct range {  // both included
    Unit first, last;
  };
  struct state {
    Unit gaps;                         // bytes in all gaps so far
    plain_vector<std::uint32_t> used;  // sets that they may hold
    plain_vector<range> ranges;        // gaps that may come next
    plain_vector<Unit> filled;         // those of them that are filled to the byte
  };
  struct link {
    std::uint32_t from = none, to = none;
    Unit gap = 0;
  };

  static constexpr std::size_t place(plain_vector<link> const& links, std::uint32_t from, Unit gap) {
    std::size_t at = hash_of(from, static_cast<std::uint64_t>(gap)) & (links.size() - 1);
    while (links[at].from != none && (links[at].from != from || links[at].gap != gap))
      at = (at + 1) & (links.size() - 1);
    return at;
  }
  constexpr void more_links() {
    plain_vector<link> larger(2 * next_.size());
    for (auto const& l : next_)
      if (l.from != none) larger[place(larger, l.from, l.gap)] = l;
    next_ = static_cast<plain_vector<link>&&>(larger);
  }
  /// Of records of one size the first are used first.
  constexpr bool in_order(std::uint32_t set) const {
    for (std::size_t i = 1; i < after_equal_.size(); ++i)
      if (after_equal_[i] && (set >> i & 1) && !(set >> (i - 1) & 1)) return false;
    return true;
  }
  /// What may still be wasted if the gaps so far hold that set.
  constexpr Unit slack_left(Unit gaps, std::uint32_t set) const { return slack_ - (gaps - sums_[set]); }
  /// f(set with more records in it, bytes of these) for all that are in order.
  template <class F>
  constexpr void for_each_more(std::uint32_t used, F&& f) const {
    auto const rest = static_cast<std::uint32_t>(sums_.size() - 1) & ~used;
    for (std::uint32_t more = rest;; more = (more - 1) & rest) {
      if (in_order(used | more)) f(used | more, sums_[more]);
      if (more == 0) return;
    }
  }
  constexpr std::uint32_t follow(std::uint32_t from, Unit gap) {
    Unit const before = states_[from].gaps;
    plain_vector<std::uint32_t> sets;
    for (auto used : states_[from].used)
      for_each_more(used, [&](std::uint32_t set, Unit bytes) {
        if (bytes <= gap && gap - bytes <= slack_left(before, used)) sets.push_back(set);
      });
    detail::sort_list(sets, [](std::uint32_t a, std::uint32_t b) {
      return std::popcount(a) != std::popcount(b) ? std::popcount(a) > std::popcount(b) : a < b;
    });
    plain_vector<std::uint32_t> largest;
    for (auto set : sets)
      if (std::none_of(largest.begin(), largest.end(), [&](std::uint32_t other) { return (set & ~other) == 0; }))
        largest.push_back(set);
    return find_or_add(before + gap, largest);
  }
  constexpr std::uint32_t find_or_add(Unit gaps, plain_vector<std::uint32_t> const& used) {
    if (2 * (states_.size() + 1) > by_content_.size()) {
      by_content_.assign(2 * by_content_.size(), none);
      for (std::uint32_t k = 0; k < states_.size(); ++k) by_content_[slot(states_[k].gaps, states_[k].used)] = k;
    }
    auto& at = by_content_[slot(gaps, used)];
    if (at != none) return at;
    at = static_cast<std::uint32_t>(states_.size());
    states_.push_back({gaps, used, {}, {}});
    fill(states_.back());
    return at;
  }
  constexpr std::size_t slot(Unit gaps, plain_vector<std::uint32_t> const& used) const {
    auto z = static_cast<std::uint64_t>(gaps);
    for (auto set : used) z = hash_of(z, set);
    std::size_t at = hash_of(z, 1) & (by_content_.size() - 1);
    while (by_content_[at] != none && (states_[by_content_[at]].gaps != gaps || states_[by_content_[at]].used != used))
      at = (at + 1) & (by_content_.size() - 1);
    return at;
  }
  constexpr void fill(state& s) {
    for (auto used : s.used) {
      Unit const slack = slack_left(s.gaps, used);
      for_each_more(used, [&](std::uint32_t, Unit bytes) {
        s.filled.push_back(bytes);
        s.ranges.push_back({bytes, bytes + slack});
      });
    }
    detail::sort_list(s.filled);
    s.filled.erase(std::unique(s.filled.begin(), s.filled.end()), s.filled.end());
    detail::sort_list(s.ranges, [](range const& a, range const& b) { return a.first < b.first; });
    std::size_t kept = 0;
    for (auto const& r : s.ranges)
      if (kept > 0 && r.first <= s.ranges[kept - 1].last + 1)
        s.ranges[kept - 1].last = std::max(s.ranges[kept - 1].last, r.last);
      else s.ranges[kept++] = r;
    s.ranges.resize(kept);
  }

  Unit slack_ = 0;
  plain_vector<Unit> sums_;  // of each set of records
  plain_vector<char> after_equal_;
  std::vector<state> states_;
  plain_vector<std::uint32_t> by_content_;  // states by what they are
  plain_vector<link> next_;
  std::size_t links_ = 0;
};

}  // namespace neap::inline v0::detail
