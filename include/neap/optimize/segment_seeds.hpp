// Where a search with recomputation starts: whole programs checkpointed at several prices, for each the budget with which
// the limits are just met. Deep models need hundreds of recomputations before the peak falls at all; a search that makes
// them one by one has no time for that.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/mutate/recompute_segments.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_policy.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// The best that seeds have come to so far, whatever they start from.
struct best_segments {
  seconds_t latency = std::numeric_limits<double>::infinity();  // of those within the limit of memory
  bytes_t peak = std::numeric_limits<bytes_t>::max();           // of those within the limit of latency
};

class segment_seeds {
 public:
  /// The candidate and the goal outlive the seeds; the goal may change between runs. Fewer prices once `stop()`.
  template <class Stop>
  segment_seeds(candidate const& from, objective const& goal, Stop&& stop,
                search_policy::segment_numbers const& numbers = {})
      : from_(from),
        goal_(goal),
        numbers_(numbers),
        ground_(recompute_segments::ground_of(from)) {
    if (ground_.empty()) return;
    cuts_ = ground_.hull(from.graph.op_count() > numbers.large ? numbers.prices_of_large : numbers.prices, stop);
    // By the price of the front, the highest first: with all kept at the tail, or nearly as little; then what is between.
    auto const all = static_cast<std::uint32_t>(cuts_.size());
    for (auto k = all; k-- > 1;) {
      pairs_.push_back({k, 0});
      if (k > 1) pairs_.push_back({k, k - 1});
    }
    for (std::uint32_t apart = 2; apart + 1 < all; ++apart)
      for (auto k = all; k-- > apart + 1;) pairs_.push_back({k, k - apart});
  }

  recompute_ground const& ground() const { return ground_; }

  /// From the first pair of prices on, again.
  void restart() { next_ = 0; }
  /// Calls `evaluate(mutation, edited)`, which gives a plan_cost, for budgets that close in on the limits, at the next pair of
  /// prices; `keep()` after those that a search may go on from. At most a dozen candidates. `target` is the peak that is
  /// wanted where the goal limits memory. False if there are no more pairs.
  template <class Evaluate, class Stop, class Keep>
  bool next(bytes_t target, best_segments& best, Evaluate&& evaluate, Stop&& stop, Keep&& keep) {
    if (next_ == pairs_.size()) return false;
    auto const& [front, tail] = pairs_[next_++];
    if (goal_.limits_memory) meet_memory(cuts_[front], cuts_[tail], target, best, evaluate, stop, keep);
    else meet_latency(cuts_[front], cuts_[tail], best, evaluate, stop, keep);
    return true;
  }

 private:
  std::optional<edited> build(recompute_choice const& choice) const { return recompute_segments::build(from_, choice); }
  /// At least about what a choice comes to: not all that may run again is needed.
  seconds_t estimate(recompute_choice const& choice) const {
    return from_.result.latency + numbers_.needed * choice.seconds;
  }

  /// The largest budget, which is the quickest, whose peak is within the limit.
  template <class Evaluate, class Stop, class Keep>
  void meet_memory(recompute_cut const& front, recompute_cut const& tail, bytes_t target, best_segments& best,
                   Evaluate&& evaluate, Stop&& stop, Keep&& keep) {
    bytes_t low = -1, high = -1;  // budgets: too small to choose by, or within the limit; above it
    bytes_t const close = std::max<bytes_t>(ratio_of(numbers_.tolerance, target), 1);
    bytes_t budget = target;
    for (int tries = 0; tries < numbers_.max_tries && !stop(); ++tries) {
      auto const choice = ground_.choose(front, tail, budget);
      std::optional<plan_cost> v;
      if (choice.fits) {
        if (estimate(choice) > best.latency) return;
        if (auto e = build(choice)) v = evaluate(recompute_segments{front.price, tail.price, budget}, std::move(*e));
      }
      bytes_t step = std::max(ratio_of(numbers_.step, budget), close);
      if (v && v->peak_bytes > target) {
        if (v->latency < best.latency && v->peak_bytes < target + ratio_of(numbers_.near_ratio, target)) keep();
        high = budget;
        step = -std::max(v->peak_bytes - target, close);
      } else {
        if (v) {
          step = std::max(target - v->peak_bytes, close);
          if (v->latency < best.latency) best.latency = v->latency, keep();
        }
        low = budget;
      }
      budget += step;
      if (low >= 0 && high >= 0) {
        if (high - low <= close) return;
        if (budget <= low || budget >= high) budget = low + (high - low) / 2;
      }
      if (budget <= 0 || budget > from_.result.peak_bytes) return;
    }
  }

  /// The smallest budget whose latency is within the limit.
  template <class Evaluate, class Stop, class Keep>
  void meet_latency(recompute_cut const& front, recompute_cut const& tail, best_segments& best, Evaluate&& evaluate,
                    Stop&& stop, Keep&& keep) {
    bytes_t low = 0, high = std::min(best.peak, from_.result.peak_bytes);  // too slow, or none; quick enough
    bytes_t const close = std::max<bytes_t>(ratio_of(numbers_.latency_tolerance, from_.result.peak_bytes), 1);
    for (int tries = 0; tries < numbers_.max_tries && high - low > close && !stop(); ++tries) {
      bytes_t const budget = tries == 0 ? high - close : low + (high - low) / 2;
      auto const choice = ground_.choose(front, tail, budget);
      std::optional<plan_cost> v;
      if (choice.fits && estimate(choice) <= goal_.latency)
        if (auto e = build(choice)) v = evaluate(recompute_segments{front.price, tail.price, budget}, std::move(*e));
      if (v && v->latency <= goal_.latency) {
        if (v->peak_bytes < best.peak) best.peak = v->peak_bytes, keep();
        high = budget;
      } else {
        if (tries == 0) return;
        low = budget;
      }
    }
  }

  candidate const& from_;
  objective const& goal_;
  search_policy::segment_numbers numbers_;
  recompute_ground ground_;
  std::vector<recompute_cut> cuts_;  // the corners of the hull; none if there is nothing to compute again
  struct prices {
    std::uint32_t front, tail;  // cuts
  };
  plain_vector<prices> pairs_;
  std::size_t next_ = 0;  // of them
};

}}}  // namespace neap::v0::detail
