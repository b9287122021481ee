// Where a search with recomputation starts: whole programs checkpointed at several prices, for each the budget with which
// the limits are just met. Deep models need hundreds of recomputations before the peak falls at all; a search that makes
// them one by one has no time for that.
#pragma once

#include <neap/mutate/checkpoint.hpp>
#include <neap/optimize/objective.hpp>

#include <limits>
#include <optional>
#include <vector>

namespace neap::inline v0::detail {

template <class G>
class checkpoint_seeds {
 public:
  /// The candidate and the goal outlive the seeds; the goal may change between runs.
  checkpoint_seeds(candidate<G> const& from, objective const& goal)
      : from_(from),
        goal_(goal),
        ground_(checkpoint::ground_of(from)) {
    if (!ground_.empty()) cuts_ = ground_.hull(from.graph.op_count() > 20000 ? 12 : 32);
  }

  recompute_ground const& ground() const { return ground_; }

  /// Calls `judge(mutation, edited)`, which gives a verdict, for budgets that close in on the limits, at each pair of
  /// prices that may do better than those before; `keep()` after those that a search may go on from. At most a dozen
  /// candidates a pair. `target` is the peak that is wanted where the goal limits memory.
  template <class Judge, class Stop, class Keep>
  void run(bytes_t target, Judge&& judge, Stop&& stop, Keep&& keep) {
    target_ = target;
    best_latency_ = std::numeric_limits<double>::infinity();
    best_peak_ = -1;
    auto const close = [&](std::size_t front, std::size_t tail) {
      if (goal_.limits_memory) meet_memory(cuts_[front], cuts_[tail], judge, stop, keep);
      else meet_latency(cuts_[front], cuts_[tail], judge, stop, keep);
    };
    for (std::size_t k = cuts_.size(); k-- > 1;) {
      close(k, 0);
      if (k > 1) close(k, k - 1);
    }
    for (std::size_t apart = 2; apart + 1 < cuts_.size(); ++apart)
      for (std::size_t k = cuts_.size(); k-- > apart + 1;) close(k, k - apart);
  }

 private:
  static constexpr int most_tries = 12;

  std::optional<edited<G>> build(recompute_choice const& choice) const { return checkpoint::build(from_, choice); }
  /// At least about what a choice comes to: not all that may run again is needed.
  seconds_t estimate(recompute_choice const& choice) const { return from_.result.latency + 0.92 * choice.seconds; }

  /// The largest budget, which is the quickest, whose peak is within the limit.
  template <class Judge, class Stop, class Keep>
  void meet_memory(recompute_cut const& front, recompute_cut const& tail, Judge&& judge, Stop&& stop, Keep&& keep) {
    bytes_t low = -1, high = -1;  // budgets: too small to choose by, or within the limit; above it
    bytes_t const close = std::max<bytes_t>(target_ / 1000, 1);
    bytes_t budget = target_;
    for (int tries = 0; tries < most_tries && !stop(); ++tries) {
      auto const choice = ground_.choose(front, tail, budget);
      std::optional<verdict> v;
      if (choice.fits) {
        if (estimate(choice) > best_latency_) return;
        if (auto e = build(choice)) v = judge(checkpoint{front.price, tail.price, budget}, std::move(*e));
      }
      bytes_t step = std::max(budget / 10, close);
      if (v && v->peak > target_) {
        if (v->latency < best_latency_ && v->peak < target_ + target_ / 8) keep();
        high = budget;
        step = -std::max(v->peak - target_, close);
      } else {
        if (v) {
          step = std::max(target_ - v->peak, close);
          if (v->latency < best_latency_) best_latency_ = v->latency, keep();
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
  template <class Judge, class Stop, class Keep>
  void meet_latency(recompute_cut const& front, recompute_cut const& tail, Judge&& judge, Stop&& stop, Keep&& keep) {
    bytes_t low = 0, high = best_peak_ < 0 ? from_.result.peak_bytes : best_peak_;  // too slow, or none; quick enough
    bytes_t const close = std::max<bytes_t>(from_.result.peak_bytes / 2000, 1);
    for (int tries = 0; tries < most_tries && high - low > close && !stop(); ++tries) {
      bytes_t const budget = tries == 0 ? high - close : low + (high - low) / 2;
      auto const choice = ground_.choose(front, tail, budget);
      std::optional<verdict> v;
      if (choice.fits && estimate(choice) <= goal_.latency)
        if (auto e = build(choice)) v = judge(checkpoint{front.price, tail.price, budget}, std::move(*e));
      if (v && v->latency <= goal_.latency * (1 + 1e-12)) {
        if (best_peak_ < 0 || v->peak < best_peak_) best_peak_ = v->peak, keep();
        high = budget;
      } else {
        if (tries == 0) return;
        low = budget;
      }
    }
  }

  candidate<G> const& from_;
  objective const& goal_;
  recompute_ground ground_;
  std::vector<recompute_cut> cuts_;  // the corners of the hull; none if there is nothing to compute again
  // Of the run:
  bytes_t target_ = 0;
  seconds_t best_latency_ = 0;  // of those within the limit of memory
  bytes_t best_peak_ = -1;      // of those within the limit of latency
};

}  // namespace neap::inline v0::detail
