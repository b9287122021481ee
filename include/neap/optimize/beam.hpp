// Beam search as in MAGIS (Chen et al., ASPLOS'24; the first of the two optimizers of its release): in each round a few of
// the candidates that wait are expanded, those at evenly spaced ranks, so that the beam is not a handful of siblings. What is
// worse than the best by more than a tolerance is forgotten. It is there to be compared with, and to be built on: a search
// dives by default (best_first.hpp), and on most graphs and limits that finds more.
//
//   neap::optimize(step, moves, neap::memory_limit{2_GiB}, neap::beam{.width = 8});
//
// Other than there: progress is counted in bytes above the target, summed over positions, because the peak does not fall
// before the last of the ops that hold it is dealt with; under a limit of memory candidates are ranked by what they may come
// to cost once they meet it (by its key, the peak first, the largest step is taken, however dear); and what meets it is not
// expanded, because mutations that free more cost more.
#pragma once

#include <neap/optimize/search_strategy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace neap { inline namespace v0 {

struct beam {
  std::size_t width = 8;   // candidates expanded a round
  double tolerance = 1.1;  // times the limits and the best that a candidate may be worse and still wait

  search_round operator()(std::span<waiting_candidate const> all, search_standing const& now) const {
    plain_vector<std::uint32_t> ranks;
    for (std::uint32_t k = 0; k < all.size(); ++k)
      if (is_tolerable(all[k], now)) ranks.push_back(k);
    std::stable_sort(ranks.begin(), ranks.end(), [&](std::uint32_t a, std::uint32_t b) {
      return now.goal.limits_memory ? all[a].estimate < all[b].estimate : all[a].excess < all[b].excess;
    });
    search_round next;
    auto const n = ranks.size(), chosen = std::min(std::max<std::size_t>(width, 1), n);
    for (std::size_t k = 0, at = 0; k < n; ++k)
      if (at < chosen && k == at * n / chosen) next.expand.push_back(ranks[k]), ++at;
      else next.keep.push_back(ranks[k]);
    return next;
  }

 private:
  bool is_tolerable(waiting_candidate const& c, search_standing const& now) const {
    if (c.latency > tolerance * now.goal.latency) return false;
    if (!now.goal.limits_memory) return true;
    return c.excess > 0 && (!now.fits || c.latency <= tolerance * now.best.latency);
  }
};

}}  // namespace neap::v0
