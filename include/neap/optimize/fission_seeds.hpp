// Which fissions a search builds first: those of several candidates - the program as it came, and recomputed by segments at
// several prices, so that each part recomputes within itself - estimated by one sweep each, and ranked by what is asked.
#pragma once

#include <neap/mutate/checkpoint.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/optimize/objective.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

/// The fissions of several candidates, the most promising first.
class fission_seeds {
 public:
  struct option {
    std::size_t base;  // the candidate's number
    estimated_fission what;
  };

  explicit fission_seeds(objective const& goal) : goal_(goal) {}

  /// Adds those of a candidate that may do.
  template <class G>
  void add(std::size_t base, candidate<G> const& c, fission_sweep_options const& options = {}) {
    for (auto const& f : fission_sweep(c.graph, c.order, c.result, options).front())
      if (f.latency <= 1.05 * goal_.latency) options_.push_back({base, f});
  }
  /// Those that are expected to meet the target, the quickest first, and behind them the others, the smallest first; where
  /// only latency is limited, the smallest first. Of two that come to the same, one.
  NEAP_ONCE std::vector<option> ranked(bytes_t target) const {
    auto all = options_;
    auto const rank = [&](option const& o) {
      bool const meets = goal_.limits_memory && o.what.peak <= target;
      return std::pair(meets ? 0 : 1, meets ? o.what.latency : static_cast<double>(o.what.peak));
    };
    std::stable_sort(all.begin(), all.end(), [&](option const& a, option const& b) { return rank(a) < rank(b); });
    auto const same = [](option const& a, option const& b) {
      return a.what.peak == b.what.peak && a.what.latency == b.what.latency;
    };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    return all;
  }

 private:
  objective const& goal_;
  std::vector<option> options_;
};

/// Budgets and prices at which a program is recomputed by segments before it is cut: from most of its peak down to a tenth.
inline constexpr double budgets_before_fission[] = {0.8, 0.62, 0.47, 0.35, 0.26, 0.19, 0.14, 0.1};

}  // namespace neap::inline v0::detail
