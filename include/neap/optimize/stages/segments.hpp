// A stage of the search: recomputation by segments of the orders to start from (segment_seeds.hpp).
#pragma once

#include <neap/optimize/search_budget.hpp>
#include <neap/optimize/search_state.hpp>
#include <neap/optimize/segment_seeds.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class segments {
 public:
  using node_ptr = search_state::node_ptr;
  struct of_order {
    node_ptr start;
    segment_seeds seeds;  // of the start's state
  };

  explicit segments(search_state& state) : state_(state), numbers_(state.policy.segments) {}

  bool is_on() const { return numbers_.on && state_.allowed.recompute; }

  void begin_epoch() {
    all_.clear();
    first_with_room_ = SIZE_MAX;
  }
  /// Orders to start from, from this one on, leave latency that other mutations may spend: they come last.
  void leave_room_from(std::size_t first) { first_with_room_ = first; }

  /// Of each order and price, the candidate that reaches the limits. With the stage's share of the epoch; once the limit has
  /// moved (`again`), with a part of what is left. Orders that leave room have a share of their own besides.
  void add_seeds(std::vector<node_ptr> const& starts, bool again = false) {
    if (!is_on()) return;
    prepare(starts);
    for (auto& s : all_) s.seeds.restart();
    auto const first = std::min(first_with_room_, all_.size());
    auto const used = state_.budget.used();
    double const most = again ? used + (state_.part - used) * numbers_.again : numbers_.share + state_.external_share;
    best_segments best;
    auto const never = [] { return false; };
    add_in_turn(0, first, most, best, never);
    add_in_turn(first, all_.size(), std::max(most, state_.budget.used() + numbers_.with_room), best, never);
  }
  /// The same until one meets the limits, with a part of the budget; the next call goes on where this one has ended.
  void add_until_met(std::vector<node_ptr> const& starts, double part) {
    if (!is_on()) return;
    prepare(starts);
    best_segments best;
    add_in_turn(0, all_.size(), part, best, [&] { return state_.is_met(); });
  }
  /// Prepares those orders to start from that are not prepared yet, while there is time: the first one in any case. All
  /// that are.
  std::vector<of_order> const& prepare(std::vector<node_ptr> const& starts) {
    if (!is_on()) return all_;
    auto const late = [&] { return state_.out_of_time(numbers_.preparing + state_.external_share); };
    for (auto k = all_.size(); k < starts.size() && !(k > 0 && late()); ++k)
      all_.push_back({starts[k], {starts[k]->state, state_.goal, late, numbers_}});
    return all_;
  }

 private:
  /// Of some of the orders, a pair of prices of each in turn, with a part of the budget.
  template <class Enough>
  void add_in_turn(std::size_t begin, std::size_t end, double part, best_segments& best, Enough&& enough) {
    auto const stop = [&] { return state_.out_of_time(part) || enough(); };
    for (bool any = true; any && !stop();) {
      any = false;
      for (auto k = begin; k < end; ++k) {
        auto& [n, seeds] = all_[k];
        node_ptr last;
        auto const try_one = [&, &n = n](recompute_segments const& m, edited e) {
          last = state_.evaluate_edit(n, m, std::move(e), true);
          return plan_cost(last->state.result);
        };
        any |= seeds.next(state_.target, best, try_one, stop, [&] { state_.enqueue_seed(last); });
      }
    }
  }

  search_state& state_;
  search_policy::segment_numbers const& numbers_;
  std::vector<of_order> all_;
  std::size_t first_with_room_ = SIZE_MAX;
};

}}}  // namespace neap::v0::detail
