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

/// What a candidate came to.
struct verdict {
  bytes_t peak;
  seconds_t latency;
};

template <class G>
class checkpoint_seeds {
 public:
  /// `target` is the peak that is wanted where the goal limits memory.
  checkpoint_seeds(candidate<G> const& from, objective const& goal, bytes_t target)
      : from_(from), goal_(goal), target_(target), ground_(checkpoint::ground_of(from)) {}

  /// Calls `judge(mutation, edited)`, which gives a verdict, for budgets that close in on the limits, at each pair of
  /// prices; `keep()` after each one that meets them. O(prices) candidates, a dozen at most for each.
  template <class Judge, class Stop, class Keep>
  void run(Judge&& judge, Stop&& stop, Keep&& keep) {
    if (ground_.empty()) return;
    auto prices = ground_.prices(12);
    prices.push_back(std::numeric_limits<double>::infinity());
    std::vector<recompute_cut> cuts;
    cuts.push_back(ground_.cut(0));
    for (auto p : prices) cuts.push_back(ground_.cut(p));
    for (std::size_t k = cuts.size(); k-- > 1;) {
      close_in(cuts[k], cuts[0], judge, stop, keep);
      if (k > 1) close_in(cuts[k], cuts[k - 1], judge, stop, keep);
    }
  }

 private:
  /// Budgets from both sides of where the limit is met: with a limit of memory the largest that keeps it, which is the
  /// quickest; with one of latency alone the smallest.
  template <class Judge, class Stop, class Keep>
  void close_in(recompute_cut const& front, recompute_cut const& tail, Judge&& judge, Stop&& stop, Keep&& keep) {
    bool const memory = goal_.limits_memory;
    bytes_t good = -1, bad = -1;  // budgets: the limit is met, is not met
    bytes_t budget = memory ? target_ : from_.result.peak_bytes / 2;
    bytes_t const close = std::max<bytes_t>((memory ? target_ : from_.result.peak_bytes) / 500, 1);
    for (int tries = 0; tries < 10 && !stop(); ++tries) {
      checkpoint const m{front.price, tail.price, budget};
      auto const choice = ground_.choose(front, tail, budget);
      std::optional<verdict> v;
      if (choice.fits && from_.result.latency + choice.seconds < best_latency_ * 1.05) {
        if (auto e = again_builder(from_.graph, from_.order, ground_.turn(), choice.dropped).template build<G>())
          v = judge(m, std::move(*e));
      } else if (choice.fits && memory) {
        return;  // cannot beat what is there
      }
      // Whether a larger budget is to be tried next.
      bool larger;
      if (memory) {
        bool const met = v && v->peak <= target_;
        if (met) {
          if (v->latency < best_latency_) best_latency_ = v->latency, keep();
          good = budget;
        } else if (v) {
          bad = budget;
        } else {
          good = std::max(good, budget);  // too small a budget: nothing can be chosen
        }
        larger = met || !v;
        bytes_t const step = v ? (met ? target_ - v->peak : v->peak - target_) : budget / 10;
        budget += larger ? std::max(step, close) : -std::max(step, close);
        if (good >= 0 && bad >= 0) {
          if (bad - good <= close) return;
          if (budget <= good || budget >= bad) budget = good + (bad - good) / 2;
        }
        if (budget <= 0 || budget > from_.result.peak_bytes) return;
      } else {
        bool const met = v && v->latency <= goal_.latency * (1 + 1e-12);
        if (met) keep();
        (met ? good : bad) = budget;
        auto const low = bad < 0 ? 0 : bad, high = good < 0 ? from_.result.peak_bytes : good;
        if (high - low <= close) return;
        budget = low + (high - low) / 2;
      }
    }
  }

  candidate<G> const& from_;
  objective const& goal_;
  bytes_t target_;
  recompute_ground ground_;
  seconds_t best_latency_ = std::numeric_limits<double>::infinity();
};

}  // namespace neap::inline v0::detail
