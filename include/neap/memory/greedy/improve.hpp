// Makes a plan better where it is worst.
//
// The arena ends with the highest record. Around the moment of most load that this record lives through a window of
// time is cut out, at moments of little load; the records inside are taken out and put back by first fit
// (memory/greedy/first_fit.hpp), with those that cross the window's edges in the way, and given up at the first that would
// reach the old end again. Several orders are tried, then the best one with a few of its records preferred more or less
// than before (a walk uphill). So the work goes to the moments that decide the arena, and a million records cost no more
// than the few thousand around them. The idea of putting the troublesome back first in a changed order is squeaky wheel
// optimization (Joslin and Clements 1999); the walk here takes its changes at random.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/core/split_mix.hpp>
#include <neap/memory/bounds.hpp>
#include <neap/memory/greedy/first_fit.hpp>
#include <neap/memory/greedy/free_space.hpp>
#include <neap/memory/records.hpp>
#include <neap/memory/sections.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// Whether work that can end early is to end; never, without a function.
struct early_end {
  bool (*is_over)(void const*) = nullptr;
  void const* of = nullptr;
  constexpr bool operator()() const { return is_over && is_over(of); }
};

/// What improvement may spend: records put down, about 2 us each. Counted in plans as work.
struct improve_budget {
  std::int64_t placements = 400'000;
  early_end ended{};
};

namespace detail {

inline constexpr std::array<fit_order, 7> improve_orders{{{2, 15}, {2, 30}, {4, 0}, {1, 15}, {2, 2}, {3, 8}, {3, 30}}};

class plan_improver {
 public:
  /// For a plan of `p` with offsets; both outlive this.
  constexpr plan_improver(memory_problem const& p, memory_plan& plan)
      : p_(p),
        plan_(plan),
        facts_(p),
        keys_(p.count(), 0),
        begun_(std::size_t{facts_.sections} + 1, 0),
        tries_(facts_.sections, 0) {
    for (auto const& l : facts_.life)
      if (l.begin < l.end) ++begun_[l.begin + 1];
    for (std::size_t s = 1; s < begun_.size(); ++s) begun_[s] += begun_[s - 1];
  }

  constexpr void run(improve_budget budget) {
    std::size_t worst = highest();
    for (std::uint32_t failures = 0; plan_.arena_bytes > plan_.lower_bound_bytes;) {
      if (failures % patience == 0 && !look_at(worst, wanted << std::min(failures / patience, 2u))) return;
      if (placed_ + static_cast<std::int64_t>(inside_.size()) > budget.placements || budget.ended()) return;
      if (attempt(budget.ended)) worst = highest(), failures = 0;
      else ++failures;
    }
    plan_.status = plan_status::optimal;
  }

  constexpr std::int64_t placed() const { return placed_; }

 private:
  static constexpr std::uint32_t wanted = 4096;               // records in a window on either side, before any failure
  static constexpr std::uint32_t patience = 16;               // failures until a window is doubled
  static constexpr std::int64_t records_between_looks = 256;  // at whether the work is to end: about half a millisecond

  constexpr std::size_t highest() const {
    std::size_t worst = 0;
    std::int64_t top = -1;
    for (std::size_t i = 0; i < p_.count(); ++i)
      if (p_.occupies(i) && plan_.offsets[i] + p_.size[i] > top) top = plan_.offsets[i] + p_.size[i], worst = i;
    return worst;
  }

  /// Sets the window around record i, with `wider` records on either side; false if nothing can move it.
  constexpr bool look_at(std::size_t i, std::uint32_t wider) {
    auto const life = facts_.life[i];
    if (p_.fixed_of(i) != any_offset || life.begin == life.end) return false;
    auto const least = [&](std::uint32_t from, std::uint32_t to) {  // of the sections [from, to]
      return static_cast<std::uint32_t>(std::min_element(facts_.load.begin() + from, facts_.load.begin() + to + 1) -
                                        facts_.load.begin());
    };
    auto const most = [&](std::uint32_t from, std::uint32_t to) {
      return static_cast<std::uint32_t>(std::max_element(facts_.load.begin() + from, facts_.load.begin() + to + 1) -
                                        facts_.load.begin());
    };
    auto const at = [&](std::uint32_t count) {  // the last section before which at most `count` records begin
      return std::min(
          facts_.sections - 1,
          static_cast<std::uint32_t>(std::upper_bound(begun_.begin(), begun_.end(), count) - begun_.begin()) - 1);
    };
    auto const before = [&](std::uint32_t section, std::uint32_t count) {
      return begun_[section] > count ? std::min(at(begun_[section] - count), section) : 0;
    };
    auto const after = [&](std::uint32_t section, std::uint32_t count) {
      return begun_.back() - begun_[section] > count ? std::max(at(begun_[section] + count), section)
                                                     : facts_.sections - 1;
    };
    // What made the record lie so high may be a fuller moment nearby.
    std::uint32_t left = life.begin, right = life.end - 1;
    centre_ = most(before(left, wider), after(right, wider));
    left = std::min(left, centre_), right = std::max(right, centre_);
    // An edge lies where the least crosses.
    section_range window{0, facts_.sections};
    if (auto const far = before(left, wider + wider / 2); far > 0) window.begin = least(far, before(left, wider));
    if (auto const far = after(right, wider + wider / 2); far + 1 < facts_.sections)
      window.end = least(after(right, wider), far) + 1;
    if (begun_.back() <= 4 * wanted) window = {0, facts_.sections};
    if (window == window_) return true;
    if (wider > wanted) tries_[centre_] = 0;  // all orders again
    window_ = window;
    inside_.clear(), crossing_.clear(), sorted_.clear();
    for (std::uint32_t k = 0; k < p_.count(); ++k) {
      auto const l = facts_.life[k];
      if (l.begin >= l.end || l.end <= window.begin || l.begin >= window.end) continue;
      bool const moves = l.begin >= window.begin && l.end <= window.end && p_.fixed_of(k) == any_offset;
      (moves ? inside_ : crossing_).push_back(k);
    }
    return true;
  }

  /// Puts the window's records back in the next order; true if all end below the arena's end.
  constexpr bool attempt(early_end ended) {
    auto const turn = tries_[centre_]++;
    order_.clear();
    if (turn < improve_orders.size()) {
      for (auto i : inside_)
        order_.push_back({fit_key(p_, facts_, improve_orders[turn], i, plan_.lower_bound_bytes), i});
      detail::sort_list(order_);
      if (turn == 0) {
        for (auto const& r : order_)
          if (keys_[r.record] == 0) keys_[r.record] = r.key;
        sorted_.clear();
      }
    } else {
      if (sorted_.empty()) {
        for (auto i : inside_) sorted_.push_back({keys_[i], i});
        detail::sort_list(sorted_);
      }
      changed_.clear(), kept_.clear();
      for (auto const& r : sorted_)
        if (auto const dice = random_(); dice % 32 == 0) changed_.push_back({r.key * change(dice >> 8), r.record});
        else kept_.push_back(r);
      detail::sort_list(changed_);
      order_.resize(inside_.size());
      std::merge(kept_.begin(), kept_.end(), changed_.begin(), changed_.end(), order_.begin());
    }
    auto const origin = window_.begin;
    space_.reset(window_.end - origin);
    for (auto i : crossing_)
      facts_.for_each_piece(p_, i, [&](section_range when, std::int64_t a, std::int64_t b) {
        auto const begin = std::max(when.begin, origin), end = std::min(when.end, window_.end);
        if (begin < end) space_.take({begin - origin, end - origin}, plan_.offsets[i] + a, plan_.offsets[i] + b);
      });
    placed_ += static_cast<std::int64_t>(crossing_.size());
    found_.clear();
    for (auto const& r : order_) {
      if (++placed_ % records_between_looks == 0 && ended()) return false;
      found_.push_back(put_lowest(p_, facts_, space_, r.record, origin));
      if (found_.back() + p_.size[r.record] >= plan_.arena_bytes) return false;
    }
    for (std::size_t k = 0; k < order_.size(); ++k) {
      plan_.offsets[order_[k].record] = found_[k];
      keys_[order_[k].record] = order_[k].key;
    }
    plan_.arena_bytes = end_of(p_, plan_.offsets);
    sorted_ = order_;
    return true;
  }

  /// A factor from 1/4 to 4.
  static constexpr double change(std::uint64_t r) {
    double const f = 1 + 3 * static_cast<double>((r >> 1) % 4096) / 4096;
    return r & 1 ? f : 1 / f;
  }

  memory_problem const& p_;
  memory_plan& plan_;
  fit_facts facts_;
  free_space space_;
  std::vector<double> keys_;          // of each record, in the order that last succeeded
  std::vector<std::uint32_t> begun_;  // records that begin before each section
  std::vector<std::uint32_t> tries_;  // of the window around each section
  section_range window_{};            // the present one
  std::uint32_t centre_ = 0;
  std::vector<std::uint32_t> inside_;    // records that may move
  std::vector<std::uint32_t> crossing_;  // records in their way
  plain_vector<keyed> order_;            // of this attempt
  plain_vector<keyed> sorted_;           // the records that may move by keys_, or empty
  plain_vector<keyed> changed_, kept_;
  std::vector<std::int64_t> found_;
  std::int64_t placed_ = 0;
  split_mix random_{1};
};

/// Improves a plan of `p` in place. Never worse; the same plan and budget give the same result.
constexpr void improve_plan(memory_problem const& p, memory_plan& plan, improve_budget budget) {
  if (plan.status != plan_status::feasible || budget.placements <= 0) return;
  plan_improver improver(p, plan);
  improver.run(budget);
  plan.work += improver.placed();
}

}  // namespace detail

}}  // namespace neap::v0
