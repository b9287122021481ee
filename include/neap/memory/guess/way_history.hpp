// How the ways of a planar search came about, and the packings that follow (planar_search.hpp).
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/guess/planar_orders.hpp>
#include <neap/memory/guess/planar_problem.hpp>
#include <neap/memory/guess/subsets.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

/// In the orders of a root, these leaves give way to what is below `by`.
struct replacement {
  std::uint32_t root, by;
  std::vector<std::uint32_t> leaves;
};

class way_history {
 public:
  explicit way_history(planar_problem const& problem) : problem_(problem) {}

  void clear() { steps_.clear(), stretches_.clear(), second_part_ = 0; }
  /// A step across a boundary, from the way of another step or, with `none`, from the first section. Gives its number.
  std::uint32_t add(std::uint32_t before, stretch const* assigned, std::uint32_t count) {
    steps_.push_back({before, static_cast<std::uint32_t>(stretches_.size()), count});
    stretches_.append(assigned, count);
    return static_cast<std::uint32_t>(steps_.size() - 1);
  }
  /// Steps from now on go from the first section the other way.
  void begin_second_part() { second_part_ = static_cast<std::uint32_t>(steps_.size()); }

  /// Follows a way to the end and back to the first section in those orders, which begin anew; gives the root there. Adds to
  /// the path what is replaced on the way back, and to `tried` a stretch each. `direction`: of the way to the end.
  std::uint32_t retrace(std::uint32_t last, std::size_t direction, std::uint32_t first_section, planar_orders& orders,
                        std::vector<replacement>& path, std::int64_t& tried) const {
    orders.clear();
    std::vector<replacement> there;
    auto root =
        follow(last, 0, orders.all_in(direction, first_section), direction, first_section + 1, orders, there, tried);
    std::vector<std::uint32_t> made;
    orders.tree.add_leaves(root, made);
    root = orders.in_any_order(made);
    for (auto k = there.size(); k-- > 0; ++tried) {
      made.clear();
      orders.tree.add_leaves(there[k].by, made);
      path.push_back({root, orders.in_any_order(there[k].leaves), made});
      orders.label(root, made);
      root = orders.tree.replace(root, path.back().by);
    }
    return root;
  }

  /// Offsets of the packing of a way that has come to an end in that direction: from an order of what is alive there, and
  /// from it one after the other back to the begin. `turned`: it began at the other end, else at the first section.
  void place(std::uint32_t last, std::size_t direction, std::uint32_t first_section, bool turned, planar_orders& orders,
             std::vector<std::int64_t>& offsets, std::int64_t& tried) const {
    std::vector<replacement> path;
    std::uint32_t root = planar_orders::none, at = 1, first = 0;
    if (turned) {
      auto there = last;
      while (there >= second_part_) there = steps_[there].before;
      root = retrace(there, 1 - direction, first_section, orders, path, tried);
      at = problem_.sections() - first_section, first = second_part_;
    } else {
      orders.clear();
      root = orders.all_in(direction, first_section);
    }
    root = follow(last, first, root, direction, at, orders, path, tried);
    std::vector<std::uint32_t> rank(orders.leaf_count(), 0), begun;
    auto order = orders.tree.arranged(root, rank);
    for (auto k = path.size();; --k) {
      std::int64_t top = 0;
      for (auto leaf : order) {
        if (orders.is_record(leaf)) offsets[leaf] = top;
        top += orders.size_of(leaf);
      }
      if (k == 0) return;
      auto const& r = path[k - 1];
      for (std::uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
      begun.clear();
      orders.tree.add_leaves(r.by, begun);
      auto least = planar_orders::none;
      for (auto leaf : begun) least = std::min(least, rank[leaf]);
      for (auto leaf : r.leaves) rank[leaf] = least;
      order = orders.tree.arranged(r.root, rank);
    }
  }

 private:
  struct step {
    std::uint32_t before, first, count;  // stretches of the boundary
  };

  /// Replaces from that root and boundary on what a way replaced, from step `first` on; adds to the path.
  std::uint32_t follow(std::uint32_t last, std::uint32_t first, std::uint32_t root, std::size_t direction,
                       std::uint32_t at, planar_orders& orders, std::vector<replacement>& path,
                       std::int64_t& tried) const {
    plain_vector<step> steps;
    for (auto k = last; k != planar_orders::none && k >= first; k = steps_[k].before) steps.push_back(steps_[k]);
    for (auto t = steps.size(); t-- > 0; ++at) {
      auto const& boundary = problem_.boundary(direction, at);
      orders.find_items(boundary, root);
      for (std::uint32_t k = 0; k < steps[t].count; ++k, ++tried) {
        auto const& s = stretches_[steps[t].first + k];
        path.push_back({root, planar_orders::none, {}});
        for_each_member(s.items, [&](std::size_t i) { path.back().leaves.push_back(orders.items[i]); });
        root = orders.put(boundary, root, s, path.back().by);
      }
    }
    return root;
  }

  planar_problem const& problem_;
  plain_vector<step> steps_;
  plain_vector<stretch> stretches_;
  std::uint32_t second_part_ = 0;  // the first step of it
};

}  // namespace neap::inline v0::detail
