// Which results to keep for the backward pass and which to compute again, for a whole program at once.
//
// Behind a position, the turn, much that was made before it is read again. For a price in seconds a byte, the least cut of
// the network below says what is cheaper to keep (its bytes times the price) and what to compute again (its seconds): the
// best choice if each op runs at most twice (the min-cut partitioner of PyTorch's functorch does the same for one price
// without a limit).
//
//   source -> storage that is read behind the turn -> its op -> sink        op behind the cut: computed again
//                    storage <- op that reads it                            edge storage -> op cut: kept
//
// What is computed again must not be there all at once: segments bound it. Walking from the program's begin, a segment
// ends where what is kept so far and what the segment makes again fill the budget, at the place where the fewest bytes
// cross for the bytes it covers; what crosses is kept too. Segments at the begin are the longest, because they are made
// again last, when the others' bytes are gone: for a uniform chain that is the schedule of fewest recomputed ops in which
// no op runs three times (Griewank and Walther, Revolve, 2000). What comes last before the turn is kept at another, lower
// price, from where on it fits: it is read first.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/csr.hpp>
#include <neap/core/min_cut.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/mutate/gap.hpp>
#include <neap/plan/candidate.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace neap::inline v0::detail {

/// At one price: what runs again, what is kept.
struct recompute_cut {
  double price = 0;          // seconds a byte; 0: all is kept; infinite: nothing that need not be
  plain_vector<bool> again;  // by position, up to the turn
  plain_vector<bool> keeps;  // by storage: what is read again and kept
  seconds_t seconds = 0;     // of what runs again
  bytes_t bytes = 0;         // of what is kept
};

/// What a choice comes to, by its own reckoning; a simulator says it exactly.
struct recompute_choice {
  plain_vector<bool> dropped;  // by storage
  seconds_t seconds = 0;       // of ops that run again
  bool fits = false;           // in the budget
};

/// A candidate's first half, as the choice sees it. O(ops + edges).
class recompute_ground {
 public:
  /// `may_run_again(op)` says which ops may.
  template <class MayRunAgain>
  recompute_ground(op_graph const& g, schedule const& order, simulation const& result, MayRunAgain&& may_run_again)
      : storage_count_(g.storage_count()) {
    auto const movable = movable_storages(g);
    turn_ = turn_of(g, order, movable);
    if (turn_ == no_id) return;
    learn(g, order, result, movable);
    may_.assign(turn_ + 1, false);
    for (std::uint32_t p = 0; p <= turn_; ++p) may_[p] = may_run_again(order[p]);
    if (g.has_updates()) leave_overwritten(g, order);
  }

  /// The last position of the half whose results may be dropped; no_id if nothing waits.
  std::uint32_t turn() const { return turn_; }
  /// Whether anything that waits could be computed again.
  bool empty() const { return turn_ == no_id || waiting_.empty(); }

  /// The cuts at the prices where the choice changes, from that which keeps all to that which keeps least: bytes kept
  /// against seconds they are the corners of the lower hull. At most `most`, two at least, those that matter most first
  /// found. A cut each.
  std::vector<recompute_cut> hull(std::size_t most) const;

  recompute_cut cut(double price) const;

  /// What to drop so that about `budget` bytes suffice: segments at the front's price, what comes last at the tail's.
  recompute_choice choose(recompute_cut const& front, recompute_cut const& tail, bytes_t budget) const;

 private:
  struct storage_row {
    storage_id id;
    bytes_t bytes;
    std::uint32_t maker;  // position
    bytes_t beside;       // taken by other storages when it is read behind the turn, at most
    bool waits;           // is read behind the turn
  };

  /// The position that the most bytes, by how long they wait, wait across.
  static std::uint32_t turn_of(op_graph const& g, schedule const& order, std::vector<bool> const& movable) {
    auto const n = static_cast<std::uint32_t>(order.size());
    plain_vector<std::uint32_t> last(g.storage_count(), no_id);
    plain_vector<double> change(n + 1, 0.0);
    auto const see = [&](storage_id s, std::uint32_t p) {
      auto& before = last[index(s)];
      if (movable[index(s)] && before != no_id && p > before + 1) {
        double const weight = static_cast<double>(g.bytes(s)) * (p - before);
        change[before] += weight, change[p] -= weight;
      }
      before = p;
    };
    for (std::uint32_t p = 0; p < n; ++p) {
      for (auto v : g.outputs(order[p])) see(g.storage(v), p);
      for (auto v : g.inputs(order[p]))
        if (last[index(g.storage(v))] != no_id) see(g.storage(v), p);
    }
    std::uint32_t best = no_id;
    double now = 0, most = 0;
    for (std::uint32_t p = 0; p < n; ++p)
      if ((now += change[p]) > most * (1 + 1e-9)) most = now, best = p;
    return best;
  }

  NEAP_ONCE void learn(op_graph const& g, schedule const& order, simulation const& result,
                       std::vector<bool> const& movable) {
    auto const n = static_cast<std::uint32_t>(order.size());
    row_.assign(storage_count_, no_id);
    seconds_.assign(turn_ + 1, 0.0);
    for (std::uint32_t p = 0; p <= turn_; ++p) {
      seconds_[p] = result.end[p] - result.start[p];
      for (auto v : g.outputs(order[p])) {
        auto const s = g.storage(v);
        if (!movable[index(s)] || row_[index(s)] != no_id || g.record(v).alias != alias_kind::fresh) continue;
        row_[index(s)] = static_cast<std::uint32_t>(storages_.size());
        storages_.push_back({s, g.bytes(s), p, 0, false});
      }
    }
    reads_.build(turn_ + 1, [&](auto&& pair) {
      for (std::uint32_t p = 0; p <= turn_; ++p)
        for (auto v : g.inputs(order[p]))
          if (auto const r = row_[index(g.storage(v))]; r != no_id) pair(position{p}, r);
    });
    auto const count = static_cast<std::uint32_t>(storages_.size());
    first_of_.assign(turn_ + 2, count);
    for (std::uint32_t r = count; r-- > 0;) first_of_[storages_[r].maker] = r;
    for (std::uint32_t p = turn_ + 1; p-- > 0;) first_of_[p] = std::min(first_of_[p], first_of_[p + 1]);
    // Behind the turn: who waits, and what is taken there beside what waits.
    plain_vector<bytes_t> ends(n + 1, 0);
    plain_vector<std::uint32_t> last(storages_.size(), 0);
    for (std::uint32_t p = turn_ + 1; p < n; ++p)
      for (auto v : g.inputs(order[p]))
        if (auto const r = row_[index(g.storage(v))]; r != no_id) last[r] = p, storages_[r].waits = true;
    bytes_t waiting = 0;
    for (std::uint32_t r = 0; r < storages_.size(); ++r)
      if (storages_[r].waits) waiting += storages_[r].bytes, ends[last[r]] += storages_[r].bytes, waiting_.push_back(r);
    for (std::uint32_t p = turn_ + 1; p < n; ++p) {
      auto const beside = result.bytes_at[p] - waiting;
      for (auto v : g.inputs(order[p]))
        if (auto const r = row_[index(g.storage(v))]; r != no_id)
          storages_[r].beside = std::max(storages_[r].beside, beside);
      waiting -= ends[p];
    }
  }

  /// What reads a version that is overwritten before the turn cannot run again behind it.
  NEAP_ONCE void leave_overwritten(op_graph const& g, schedule const& order) {
    table<storage_id, std::uint16_t> version(g.storage_count(), std::uint16_t{0});
    for (std::uint32_t p = 0; p <= turn_; ++p)
      for (auto v : g.outputs(order[p]))
        if (g.record(v).alias == alias_kind::update) version[g.storage(v)] = g.record(v).version;
    for (std::uint32_t p = 0; p <= turn_; ++p)
      for (auto v : g.inputs(order[p]))
        if (g.record(v).version < version[g.storage(v)]) may_[p] = false;
  }

  enum class position : std::uint32_t {};
  friend constexpr std::size_t index(position p) { return static_cast<std::size_t>(p); }

  std::size_t storage_count_;
  std::uint32_t turn_ = no_id;
  plain_vector<storage_row> storages_;    // that may be dropped, in the order in which they are made
  plain_vector<std::uint32_t> waiting_;   // rows of those that are read behind the turn
  plain_vector<std::uint32_t> first_of_;  // by position: the first row that is made there or later
  plain_vector<std::uint32_t> row_;       // by storage
  csr<position, std::uint32_t> reads_;    // rows of storages that a position reads
  plain_vector<seconds_t> seconds_;       // of positions up to the turn
  plain_vector<bool> may_;                // positions that may run again
};

NEAP_ONCE recompute_cut recompute_ground::cut(double price) const {
  recompute_cut out{price, plain_vector<bool>(turn_ + 1, false), plain_vector<bool>(storage_count_, false)};
  if (price <= 0) {
    for (auto r : waiting_) out.keeps[index(storages_[r].id)] = true, out.bytes += storages_[r].bytes;
    return out;
  }
  // Nodes: source, sink, positions, storages. Capacities in parts of all seconds, so that sums stay whole and small.
  double all = 0;
  for (auto t : seconds_) all += t;
  double const unit = all > 0 ? 1e12 / all : 1;
  auto const node = [](std::uint32_t p) { return 2 + p; };
  auto const storage_node = [&](std::uint32_t r) { return 3 + turn_ + r; };
  min_cut network(3 + turn_ + storages_.size());
  for (std::uint32_t p = 0; p <= turn_; ++p) {
    // One more than the seconds: an op that costs nothing runs again only if that saves something.
    auto const costs = may_[p] ? static_cast<std::int64_t>(seconds_[p] * unit) + 1 : min_cut::unlimited;
    network.add_edge(node(p), 1, costs);
    for (auto r : reads_[position{p}]) network.add_edge(node(p), storage_node(r), min_cut::unlimited);
  }
  for (std::uint32_t r = 0; r < storages_.size(); ++r) {
    auto const& s = storages_[r];
    double const costs = price * static_cast<double>(s.bytes) * unit;
    network.add_edge(storage_node(r), node(s.maker),
                     costs < 1e17 ? static_cast<std::int64_t>(costs) : 100000000000000000);
    if (s.waits) network.add_edge(0, storage_node(r), min_cut::unlimited);
  }
  network.cut(0, 1);
  for (std::uint32_t p = 0; p <= turn_; ++p)
    if (network.has_source(node(p))) out.again[p] = true, out.seconds += seconds_[p];
  for (std::uint32_t r = 0; r < storages_.size(); ++r)
    if (network.has_source(storage_node(r)) && !out.again[storages_[r].maker])
      out.keeps[index(storages_[r].id)] = true, out.bytes += storages_[r].bytes;
  return out;
}

NEAP_ONCE std::vector<recompute_cut> recompute_ground::hull(std::size_t most) const {
  std::vector<recompute_cut> found;
  found.push_back(cut(0));
  found.push_back(cut(std::numeric_limits<double>::infinity()));
  plain_vector<bool> done(1, false);  // between found[k] and found[k + 1] lies no corner
  while (found.size() < most) {
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

NEAP_ONCE recompute_choice recompute_ground::choose(recompute_cut const& front, recompute_cut const& tail,
                                                    bytes_t budget) const {
  auto const n = turn_ + 1;
  recompute_choice out;
  out.dropped.assign(storage_count_, false);
  plain_vector<bool> kept(storages_.size(), false);
  plain_vector<std::uint32_t> last_again(storages_.size(), 0);  // the last position that runs again and reads it
  for (std::uint32_t p = 0; p < n; ++p)
    if (front.again[p])
      for (auto r : reads_[position{p}]) last_again[r] = p;

  // What the tail keeps from each position on.
  plain_vector<bytes_t> tail_bytes(n + 1, 0), tail_beside(n + 1, 0);
  for (std::uint32_t p = n; p-- > 0;) {
    tail_bytes[p] = tail_bytes[p + 1], tail_beside[p] = tail_beside[p + 1];
    for (auto r = first_of_[p]; r < first_of_[p + 1]; ++r)
      if (tail.keeps[index(storages_[r].id)]) {
        tail_bytes[p] += storages_[r].bytes;
        tail_beside[p] = std::max(tail_beside[p], storages_[r].beside);
      }
  }

  // Segments of the front, until the tail fits.
  bytes_t front_bytes = 0;  // kept by the front so far
  std::uint32_t begin = 0, p = 0;
  plain_vector<bytes_t> covered, crossing, kept_here;  // of each position of the segment: before it
  bytes_t beside = 0;
  auto const restart = [&](std::uint32_t at) {
    begin = p = at;
    covered.clear(), crossing.clear(), kept_here.clear();
    covered.push_back(0), crossing.push_back(0), kept_here.push_back(0);
    beside = 0;
  };
  plain_vector<bytes_t> leaves(n + 1, 0);      // bytes whose last reader that runs again stands before
  auto const close = [&](std::uint32_t end) {  // a segment [begin, end): what crosses is kept
    for (auto r = first_of_[begin]; r < first_of_[end]; ++r) {
      auto const& s = storages_[r];
      bool const crosses = last_again[r] >= end && front.again[s.maker];
      kept[r] = front.keeps[index(s.id)] || crosses;
      if (kept[r]) front_bytes += s.bytes;
    }
  };
  restart(0);
  std::uint32_t tail_begin = n;
  for (;;) {
    bytes_t const here = front_bytes + kept_here[p - begin] + crossing[p - begin];
    if (here + tail_bytes[p] + tail_beside[p] <= budget) {
      close(p);
      tail_begin = p;
      break;
    }
    if (p == n) {  // the last segment is made again right away
      close(n);
      break;
    }
    bytes_t more_covered = 0, more_kept = 0, more_crossing = 0;
    for (auto r = first_of_[p]; r < first_of_[p + 1]; ++r) {
      auto const& s = storages_[r];
      if (s.waits) beside = std::max(beside, s.beside);
      if (front.keeps[index(s.id)]) more_kept += s.bytes;
      else if (front.again[p]) {
        if (s.waits) more_covered += s.bytes;
        if (last_again[r] > p) more_crossing += s.bytes, leaves[last_again[r]] += s.bytes;
      }
    }
    auto const at = p - begin;
    bytes_t const after = covered[at] + more_covered;
    if (front_bytes + kept_here[at] + more_kept + after + beside > budget) {
      // The end that covers most for what crosses it; not before anything is covered.
      std::uint32_t best = 0;
      double best_ratio = -1;
      for (std::uint32_t k = 1; k <= at; ++k) {
        if (covered[k] + kept_here[k] == 0) continue;
        double const ratio = static_cast<double>(covered[k] + kept_here[k]) / static_cast<double>(crossing[k] + 64);
        if (ratio >= best_ratio) best_ratio = ratio, best = k;
      }
      if (best == 0) return out;  // not even one op fits
      auto const end = begin + best;
      for (auto r = first_of_[begin]; r < first_of_[p + 1]; ++r) leaves[last_again[r]] = 0;
      close(end);
      if (front_bytes + beside > budget) return out;
      restart(end);
      continue;
    }
    covered.push_back(after);
    kept_here.push_back(kept_here[at] + more_kept);
    crossing.push_back(crossing[at] + more_crossing - leaves[p]);
    ++p;
  }
  for (std::uint32_t r = 0; r < storages_.size(); ++r) {
    auto const& s = storages_[r];
    if (s.maker >= tail_begin) kept[r] = !tail.again[s.maker];
    else if (!kept[r] && !front.again[s.maker]) kept[r] = true;
  }
  for (std::uint32_t q = tail_begin; q < n; ++q)  // what the tail computes again must not make the front again
    if (tail.again[q])
      for (auto r : reads_[position{q}])
        if (storages_[r].maker < tail_begin) kept[r] = true;
  for (std::uint32_t r = 0; r < storages_.size(); ++r) out.dropped[index(storages_[r].id)] = !kept[r];
  for (std::uint32_t q = 0; q < n; ++q)
    if (q < tail_begin ? front.again[q] : tail.again[q]) out.seconds += seconds_[q];
  out.fits = true;
  return out;
}

}  // namespace neap::inline v0::detail
