// Which results to keep for backward passes and which to compute again, for a whole program at once.
//
// A training step has a turn, the position that the most bytes wait across. A step over several batches one after the
// other, or of several networks that train each other, has one for each, and the stretches before them
// (recompute_stretch.hpp) are chosen for together, at one price and within one budget. Whatever waits across several turns
// is dropped at the heaviest.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/mutate/recompute_stretch.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// A candidate as the choice sees it. O(ops + edges) a turn.
class recompute_ground {
 public:
  /// `may_run_again(op)` says which ops may.
  template <class MayRunAgain>
  recompute_ground(op_graph const& g, schedule const& order, simulation const& result, MayRunAgain&& may_run_again)
      : storage_count_(g.storage_count()) {
    find_stretches(recompute_facts(g, order, result, may_run_again));
  }

  /// In the order of their turns.
  std::vector<recompute_stretch> const& stretches() const { return stretches_; }
  /// Whether nothing that waits could be computed again.
  bool empty() const { return stretches_.empty(); }

  /// The cuts at the prices where the choice changes, from that which keeps all to that which keeps least: bytes kept
  /// against seconds they are the corners of the lower hull. At most `most`, two at least, those that matter most first
  /// found; none further once `stop()`. A cut each.
  template <class Stop>
  std::vector<recompute_cut> hull(std::size_t most, Stop&& stop) const;
  std::vector<recompute_cut> hull(std::size_t most) const {
    return hull(most, [] { return false; });
  }

  recompute_cut cut(double price) const {
    recompute_cut out{price};
    for (auto const& s : stretches_) s.cut(out);
    return out;
  }

  /// What to drop so that about `budget` bytes suffice: segments at the front's price, what comes last at the tail's. It
  /// fits if it does at the heaviest turn; at others, whatever comes near to the budget.
  recompute_choice choose(recompute_cut const& front, recompute_cut const& tail, bytes_t budget) const {
    recompute_choice out;
    out.dropped.assign(storage_count_, no_id);
    out.fits = !empty() && stretches_[heaviest_].choose(front.parts[heaviest_], tail.parts[heaviest_], budget, out);
    for (std::size_t k = 0; k < stretches_.size() && out.fits; ++k)
      if (k != heaviest_) come_near(stretches_[k], front.parts[k], tail.parts[k], budget, out);
    return out;
  }

 private:
  void find_stretches(recompute_facts const& f);
  static void come_near(recompute_stretch const& s, recompute_cut::part const& front, recompute_cut::part const& tail,
                        bytes_t budget, recompute_choice& to) {
    auto const last = s.peak();
    for (auto step = std::max<bytes_t>((last - budget) / 32, 1); !s.choose(front, tail, budget, to); step *= 2)
      budget = std::min(budget + step, last);
  }

  std::size_t storage_count_;
  std::size_t heaviest_ = 0;  // of the stretches
  std::vector<recompute_stretch> stretches_;
};

template <class Stop>
std::vector<recompute_cut> recompute_ground::hull(std::size_t most, Stop&& stop) const {
  std::vector<recompute_cut> found;
  found.push_back(cut(0));
  found.push_back(cut(std::numeric_limits<double>::infinity()));
  plain_vector<bool> done(1, false);  // between found[k] and found[k + 1] lies no corner
  while (found.size() < most && !stop()) {
    std::size_t best = done.size();
    double largest = 0;
    for (std::size_t k = 0; k < done.size(); ++k) {
      double const area =
          (found[k + 1].seconds - found[k].seconds) * static_cast<double>(found[k].bytes - found[k + 1].bytes);
      if (!done[k] && area > largest) largest = area, best = k;
    }
    if (best == done.size()) break;
    auto const &a = found[best], &b = found[best + 1];
    auto middle = cut((b.seconds - a.seconds) / static_cast<double>(a.bytes - b.bytes));
    if (middle.bytes >= a.bytes || middle.bytes <= b.bytes) {
      done[best] = true;
      continue;
    }
    found.insert(found.begin() + static_cast<std::ptrdiff_t>(best) + 1, std::move(middle));
    done.insert(done.data() + best, false);
  }
  return found;
}

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/recompute_ground.ipp>
#endif
