// Assigns what ends and begins at a boundary to stretches, in the likely ways (planar_search.hpp).
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/memory/guess/planar_orders.hpp>
#include <neap/memory/guess/planar_problem.hpp>
#include <neap/memory/guess/stretch_guesses.hpp>
#include <neap/memory/guess/subsets.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace neap::inline v0::detail {

/// Depth first: the block of which most is known gets its stretch, then what is left.
class stretch_assignment {
 public:
  struct start {
    std::uint32_t root;  // the orders before
    double likelihood;
  };

  /// found(root, likelihood, stretches) for up to `most` complete assignments whose chance among all is not below
  /// `least_chance`; the orders are cut back afterwards. Gives how many stretches were tried.
  template <class Found>
  std::int64_t run(planar_boundary const& at, planar_orders& orders, std::vector<std::uint32_t> const& blocks,
                   plain_vector<stretch_guess> const& guesses, double least_chance, std::size_t most, start from,
                   Found const& found) {
    at_ = &at, orders_ = &orders, blocks_ = &blocks, guesses_ = &guesses;
    least_chance_ = least_chance, left_ = most, tried_ = 0;
    assigned_.clear();
    open_.resize(guesses.size());
    std::iota(open_.begin(), open_.end(), 0u);
    rest const all{static_cast<std::uint32_t>((std::uint64_t{1} << blocks.size()) - 1),
                   static_cast<std::uint32_t>((std::uint64_t{1} << at.beginning.size()) - 1), at.free};
    assign(from.root, all, 0, from.likelihood, 1, found);
    return tried_;
  }

 private:
  struct rest {  // of a boundary, that is not assigned yet
    std::uint32_t blocks = 0, beginning = 0;
    std::int64_t free = 0;
    /// All of it as one stretch.
    double rarity() const {
      return stretch_rarity(static_cast<std::size_t>(std::popcount(blocks)) +
                            static_cast<std::size_t>(std::popcount(beginning)) + (free != 0));
    }
    rest without(stretch_guess const& g) const {
      return {blocks & ~g.blocks, beginning & ~g.put.beginning, free - g.put.free};
    }
    bool has_room_for(stretch_guess const& g) const {
      return (g.blocks & ~blocks) == 0 && (g.put.beginning & ~beginning) == 0 && g.put.free <= free &&
             g.blocks != blocks;
    }
  };

  /// `first`: of the guesses that are open.
  template <class Found>
  void assign(std::uint32_t root, rest const& left, std::size_t first, double likelihood, double chance,
              Found const& found) {
    std::array<double, planar_policy::most_items> best{}, total{};
    auto const end = open_.size();
    for (auto o = first; o < end; ++o) {
      auto const& g = (*guesses_)[open_[o]];
      for_each_member(g.blocks, [&](std::size_t k) { best[k] = std::max(best[k], g.weight), total[k] += g.weight; });
    }
    double const whole = left.rarity();
    // At the block of which most is known.
    std::size_t at = 0;
    double most = 0;
    for_each_member(left.blocks, [&](std::size_t k) {
      if (double const share = std::max(best[k], whole) / (total[k] + whole); share > most) at = k, most = share;
    });
    double sum = total[at] + whole;
    bool together = false;  // all that is left has been tried as one stretch
    auto const try_together = [&] {
      together = true;
      if (chance * whole < least_chance_ * sum) return;
      std::uint32_t items = 0;
      for_each_member(left.blocks, [&](std::size_t k) { items |= (*blocks_)[k]; });
      if (!go_into(root, {items, left.beginning, left.free}, {}, first, likelihood * whole, chance * whole / sum,
                   found))
        sum -= whole;
    };
    for (auto o = first; o < end && left_ > 0; ++o) {
      auto const g = (*guesses_)[open_[o]];
      if ((g.blocks >> at & 1) == 0) continue;
      if (!together && whole > g.weight) try_together();
      if (chance * g.weight < least_chance_ * sum) break;
      if (!go_into(root, g.put, left.without(g), first, likelihood * g.weight, chance * g.weight / sum, found))
        sum -= g.weight;
    }
    if (!together && left_ > 0) try_together();
  }
  /// Puts the stretch there and assigns what is left then; false if what ends in the stretch cannot lie together. `first`:
  /// of the guesses that were open before.
  template <class Found>
  bool go_into(std::uint32_t root, stretch const& s, rest const& left, std::size_t first, double likelihood,
               double chance, Found const& found) {
    auto const before = orders_->size();
    std::uint32_t by = planar_orders::none;
    ++tried_;
    auto const next = orders_->put(*at_, root, s, by);
    if (next != planar_orders::none) {
      assigned_.push_back(s);
      if (left.blocks == 0) {
        --left_;
        found(next, likelihood, assigned_);
      } else {
        auto const end = open_.size();
        for (auto o = first; o < end; ++o)
          if (left.has_room_for((*guesses_)[open_[o]])) open_.push_back(open_[o]);
        assign(next, left, end, likelihood, chance, found);
        open_.resize(end);
      }
      assigned_.pop_back();
    }
    orders_->shrink(before);
    return next != planar_orders::none;
  }

  planar_boundary const* at_ = nullptr;
  planar_orders* orders_ = nullptr;
  std::vector<std::uint32_t> const* blocks_ = nullptr;
  plain_vector<stretch_guess> const* guesses_ = nullptr;
  double least_chance_ = 0;  // rarer assignments are left out
  std::size_t left_ = 0;     // complete assignments that may yet come
  std::int64_t tried_ = 0;
  std::vector<std::uint32_t> open_;  // guesses that can still be, level by level
  plain_vector<stretch> assigned_;
};

}  // namespace neap::inline v0::detail
