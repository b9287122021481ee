// Which results to keep for backward passes and which to compute again, for a whole program at once.
//
// A training step has a turn, the position that the most bytes wait across. A step over several batches one after the
// other, or of several networks that train each other, has one for each, and the stretches before them
// (recompute_stretch.hpp) are chosen for together, at one price and within one budget. Whatever waits across several turns
// is dropped at the heaviest.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/mutate/recompute_stretch.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

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

/// The position that the most bytes, by how long they wait, wait across is a turn; what is read last before it, or made
/// behind it, has turns of its own.
NEAP_ONCE void recompute_ground::find_stretches(recompute_facts const& f) {
  struct wait {  // across the positions [begin, end), of what is made and last read there
    std::uint32_t begin, end, maker, last_read;
    double weight;
  };
  plain_vector<wait> all;
  plain_vector<std::uint32_t> touched(f.storages.size(), no_id);
  auto const n = static_cast<std::uint32_t>(f.order.size());
  for (std::uint32_t p = 0; p < n; ++p) {
    auto const touch = [&](value_id v) {
      auto const k = f.number[index(f.graph.storage(v))];
      if (k == no_id) return;
      auto const before = std::exchange(touched[k], p);
      if (before == no_id || p <= before + 1) return;
      auto const& s = f.storages[k];
      all.push_back({before, p, s.maker, s.last_read, static_cast<double>(f.graph.bytes(s.id)) * (p - before)});
    };
    for (auto v : f.graph.outputs(f.order[p])) touch(v);
    for (auto v : f.graph.inputs(f.order[p])) touch(v);
  }
  struct part {
    std::uint32_t begin, end;
    plain_vector<wait> waits;
  };
  std::vector<part> open;
  open.push_back({0, n, std::move(all)});
  double largest = 0;
  while (!open.empty()) {
    auto const now = std::move(open.back());
    open.pop_back();
    plain_vector<double> weight(now.end - now.begin + 1, 0.0);
    for (auto const& w : now.waits) weight[w.begin - now.begin] += w.weight, weight[w.end - now.begin] -= w.weight;
    double sum = 0, most = 0;
    for (auto& w : weight) w = sum += w, most = std::max(most, sum);
    largest = std::max(largest, most);
    constexpr double smallest = 1.0 / 64;  // an eighth of the bytes for an eighth of the time
    if (most <= smallest * largest) continue;
    // Of several as heavy, as equal batches have them, the one in the middle: then parts soon are small.
    auto const is_heaviest = [&](std::uint32_t p) { return weight[p - now.begin] >= most * (1 - 1e-9); };
    std::vector<std::uint32_t> equal;
    for (auto p = now.begin; p < now.end; ++p)
      if (is_heaviest(p) && (p == now.begin || !is_heaviest(p - 1))) equal.push_back(p);
    auto const turn = equal[equal.size() / 2];
    stretches_.emplace_back(f, now.begin, turn, now.end);
    part early{now.begin, turn + 1, {}}, late{turn + 1, now.end, {}};
    for (auto const& w : now.waits)
      if (w.last_read <= turn) early.waits.push_back(w);
      else if (w.maker > turn) late.waits.push_back(w);
    for (auto* p : {&early, &late})
      if (!p->waits.empty()) open.push_back(std::move(*p));
  }
  if (stretches_.empty()) return;
  auto const heaviest = stretches_.front().turn();
  detail::sort_list(stretches_,
                    [](recompute_stretch const& a, recompute_stretch const& b) { return a.turn() < b.turn(); });
  while (stretches_[heaviest_].turn() != heaviest) ++heaviest_;
}

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

}  // namespace neap::inline v0::detail
