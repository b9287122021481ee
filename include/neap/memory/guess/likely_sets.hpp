// Records that lie together in most of the ways that a search had at a moment (memory/guess/planar_search.hpp). A search that
// comes from the other side has met other sums by then, and what one of the two takes for likely and the other for
// impossible is likely wrong: so does each profit by what the other knows, though neither gets to the end (the exchange of
// turbo codes: Berrou, Glavieux and Thitimajshima 1993).
#pragma once

#include <neap/core/sort.hpp>
#include <neap/memory/exact/failed_states.hpp>
#include <neap/memory/guess/pq_tree.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap::inline v0::detail {

class likely_sets {
 public:
  bool empty() const { return shares_.empty(); }
  void clear() { shares_.clear(), sets_of_.clear(); }

  /// Forgets the others. The ways have each a root and a likelihood; leaves from `count` on are no records.
  template <class Ways>
  void learn(pq_tree const& tree, Ways const& ways, std::size_t count) {
    clear();
    auto const value = [&](std::uint32_t leaf) { return leaf < count ? hash_of(leaf, 3) : 0; };
    plain_vector<set> sets;
    double total = 0;
    for (auto const& w : ways) {
      total += w.likelihood;
      tree.for_each_set(w.root, value, [&](std::uint64_t name, std::uint32_t node, std::uint32_t beside) {
        sets.push_back({name, w.likelihood, node, beside});
      });
    }
    sort_list(sets, [](set const& a, set const& b) { return a.name < b.name; });
    std::size_t different = 0;
    for (auto const& s : sets)
      if (different > 0 && sets[different - 1].name == s.name) sets[different - 1].weight += s.weight;
      else sets[different++] = s;
    sets.resize(different);
    sort_list(sets, [](set const& a, set const& b) { return a.weight > b.weight; });
    std::vector<std::uint32_t> leaves;
    sets_of_.assign(count, 0);
    for (auto const& s : sets) {
      if (s.weight < least_share * total || shares_.size() == most_sets) break;
      leaves.clear();
      tree.add_leaves(s.node, leaves);
      if (s.beside != pq_tree::none) tree.add_leaves(s.beside, leaves);
      std::erase_if(leaves, [&](std::uint32_t leaf) { return leaf >= count; });
      if (leaves.size() < 2) continue;
      for (auto leaf : leaves) sets_of_[leaf] |= std::uint32_t{1} << shares_.size();
      shares_.push_back(std::min(1.0, s.weight / total));  // more where it differs by free bytes in one way
    }
  }

  /// How likely orders are beside such in which all of the sets are contiguous; leaves that are no records may stand
  /// between. O(leaves).
  double agreement(pq_tree const& tree, std::uint32_t root) const {
    auto const all = static_cast<std::uint32_t>((std::uint64_t{1} << shares_.size()) - 1);
    auto const apart = tree.never_together(root, [&](std::uint32_t leaf) -> pq_tree::membership {
      if (leaf >= sets_of_.size()) return {};
      return {sets_of_[leaf], all & ~sets_of_[leaf]};
    });
    double product = 1;
    for (auto left = apart; left != 0; left &= left - 1)
      product *= 1 - trust * shares_[static_cast<std::size_t>(std::countr_zero(left))];
    return product;
  }

 private:
  static constexpr std::size_t most_sets = 32;
  static constexpr double least_share = 0.1, trust = 0.9;

  struct set {
    std::uint64_t name;
    double weight;
    std::uint32_t node, beside;
  };
  std::vector<double> shares_;          // of the ways
  std::vector<std::uint32_t> sets_of_;  // of each record those that it is in
};

}  // namespace neap::inline v0::detail
