// How do the records that end at a boundary hand over their room to those that begin there? What crosses the boundary
// leaves gaps, and where both sides are full, what begins fills each gap to the byte. Sums of sizes seldom agree by chance:
// the more groups of ending and beginning records have one sum each, the likelier they are the gaps.
//
//        |ccccccc|      a and b end here, d and e begin. If size(a) is size(d), then size(b) is size(e), and likely a
//        |aaa|eee|      hands over to d alone and b to e; else all four are one group.
//        |bbb|ddd|
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap::inline v0::detail {

struct grouping {
  int groups = 0;                     ///< the most that there can be; 0: not known
  double chance = 0;                  ///< about how many such groupings there would be if sizes were drawn at random
  std::vector<std::uint32_t> shares;  ///< of each that ends, a bit for each beginning one that it shares a group with
};

/// The groupings into the most groups, from all sets of records: O(2^n) for n on one side, and not known for more than
/// `most_records` or where too many sums agree.
class boundary_groups {
 public:
  static constexpr std::size_t most_records = 12, most_pairs = 2048;

  /// `ending` and `beginning` are indices into `size`; sizes are positive multiples of `unit`.
  template <class Unit>
  constexpr grouping operator()(std::vector<Unit> const& size, Unit unit, std::vector<std::uint32_t> const& ending,
                                std::vector<std::uint32_t> const& beginning) {
    if (ending.empty() || beginning.empty()) return {};
    if (ending.size() > most_records || beginning.size() > most_records) return {};
    sum_up(size, ending, left_), sum_up(size, beginning, right_);
    if (left_.back().sum != right_.back().sum || !find_pairs()) return {};
    find_least();
    count_groups();
    grouping out;
    out.groups = pairs_.back().groups;
    out.shares.assign(ending.size(), 0);
    pairs_.back().best = true;
    for (std::size_t k = pairs_.size(); k-- > 1;)
      if (pairs_[k].best)
        for_each_rest(pairs_[k], [&](pair const& group, pair& rest) {
          if (rest.groups + 1 != pairs_[k].groups) return;
          rest.best = true;
          for (std::size_t i = 0; i < ending.size(); ++i)
            if (group.ending >> i & 1) out.shares[i] |= group.beginning;
        });
    Unit largest = 0;
    for (auto i : ending) largest = std::max(largest, size[i]);
    for (auto i : beginning) largest = std::max(largest, size[i]);
    if (out.groups > 1) out.chance = ways(ending.size(), out.groups) * ways(beginning.size(), out.groups);
    for (int k = 2; k <= out.groups; ++k)
      out.chance *=
          static_cast<double>(unit) / static_cast<double>(largest) / k;  // one more sum agrees; order is no matter
    return out;
  }

 private:
  struct summed {
    std::int64_t sum;
    std::uint32_t set;
    friend constexpr bool operator<(summed const& a, summed const& b) {
      return a.sum != b.sum ? a.sum < b.sum : a.set < b.set;
    }
  };
  struct pair {  // of sets with one sum
    std::uint32_t ending, beginning;
    int groups = 0;     // the most that it falls into
    bool best = false;  // a part of some grouping of all into the most
    friend constexpr bool operator<(pair const& a, pair const& b) {
      auto const x = std::popcount(a.ending), y = std::popcount(b.ending);
      return x != y ? x < y : a.ending != b.ending ? a.ending < b.ending : a.beginning < b.beginning;
    }
  };

  /// In how many ways records can be dealt to groups, none of which is empty.
  static constexpr double ways(std::size_t records, int groups) {
    double sum = 0, choices = 1;  // inclusion and exclusion of empty groups
    for (int empty = 0; empty < groups; ++empty) {
      double deals = choices;
      for (std::size_t i = 0; i < records; ++i) deals *= groups - empty;
      sum += empty % 2 == 0 ? deals : -deals;
      choices = choices * (groups - empty) / (empty + 1);
    }
    return sum;
  }
  /// All sets of the records by their sums.
  template <class Unit>
  static constexpr void sum_up(std::vector<Unit> const& size, std::vector<std::uint32_t> const& records,
                               plain_vector<summed>& sums) {
    sums.assign(std::size_t{1} << records.size(), summed{0, 0});
    for (std::uint32_t set = 1; set < sums.size(); ++set) {
      auto const last = static_cast<std::uint32_t>(std::bit_width(set) - 1);
      sums[set] = {sums[set & ~(1u << last)].sum + size[records[last]], set};
    }
    detail::sort_list(sums);
  }
  /// The pairs of sets of one sum, each behind those that it holds. False if there are too many.
  constexpr bool find_pairs() {
    pairs_.clear();
    for (std::size_t i = 0, j = 0; i < left_.size() && j < right_.size();) {
      if (left_[i].sum < right_[j].sum) ++i;
      else if (right_[j].sum < left_[i].sum) ++j;
      else {
        for (auto k = j; k < right_.size() && right_[k].sum == left_[i].sum; ++k)
          pairs_.push_back({left_[i].set, right_[k].set});
        if (pairs_.size() > most_pairs) return false;
        ++i;
      }
    }
    detail::sort_list(pairs_);
    return true;
  }
  /// The pairs that hold no other but the empty one.
  constexpr void find_least() {
    least_.clear();
    for (auto const& x : pairs_)
      if (x.ending != 0 && std::none_of(least_.begin(), least_.end(), [&](pair const& y) {
            return (x.ending & y.ending) == y.ending && (x.beginning & y.beginning) == y.beginning;
          }))
        least_.push_back(x);
  }
  /// f(group, rest) for each least pair in x that has its first ending record.
  template <class F>
  constexpr void for_each_rest(pair const& x, F&& f) {
    for (auto const& g : least_) {
      if ((g.ending & ~x.ending) != 0 || (g.beginning & ~x.beginning) != 0) continue;
      if ((g.ending & (x.ending & ~(x.ending - 1))) == 0) continue;
      pair const rest{x.ending & ~g.ending, x.beginning & ~g.beginning};
      f(g, *std::lower_bound(pairs_.begin(), pairs_.end(), rest));
    }
  }
  constexpr void count_groups() {
    for (auto& x : pairs_)
      if (x.ending != 0)
        for_each_rest(x, [&](pair const&, pair const& rest) { x.groups = std::max(x.groups, rest.groups + 1); });
  }

  plain_vector<summed> left_, right_;
  plain_vector<pair> pairs_, least_;
};

}  // namespace neap::inline v0::detail
