// Orders that are exact piece by piece: a window slides over an order, and the ops in it are put into the order of least
// peak that there is between what runs before and what runs after, by dynamic programming over the sets of ops that may
// have run (Ahn et al., Ordering Chaos, MLSys 2020, where cells between narrow waists are such windows). A window ends
// where the sets grow too many: long ones fit where the graph is narrow.
//
// What memory_greedy gives is hardly ever improved by this: on one of 28 training graphs by more than 0.1 % (0.6 %). It
// serves for orders from elsewhere, and to see whether one could be better.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/simulator.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace neap::inline v0 {

namespace detail {

/// The best order of the ops at positions [begin, end) of an order, everything else as it stands.
class window_order {
 public:
  static constexpr std::uint32_t most_ops = 64;

  explicit window_order(flow_facts const& facts) : facts_(facts), place_(facts.storage_count()) {}

  /// Solves the window from `begin` on, of as many ops, `most` at most, as make at most `most_sets` sets: where it ends.
  /// `at` are the positions of the ops, `live` when the order's storages live.
  std::uint32_t solve(schedule const& order, table<op_id, std::uint32_t> const& at,
                      table<storage_id, live_range> const& live, std::uint32_t begin, std::uint32_t most,
                      std::size_t most_sets) {
    best_peak_ = peak_ = best_sum_ = sum_ = 0;
    auto const end = static_cast<std::uint32_t>(std::min<std::size_t>(order.size(), begin + std::min(most, most_ops)));
    for (auto n = end - begin; n > 1; n -= n / 4 + 1)
      if (fill(order, at, live, begin, n); run(most_sets)) return begin + n;
    return begin + 1;
  }
  /// Of the window solved last.
  plain_vector<op_id> const& ops() const { return best_; }
  /// Whether they make a lower peak than those that stand there, or the same with fewer bytes on the way.
  bool is_better() const { return best_peak_ < peak_ || (best_peak_ == peak_ && best_sum_ < sum_); }

 private:
  using set = std::uint64_t;
  struct state {
    set done;
    bytes_t peak;    // on the way here, above what lives throughout
    bytes_t sum;     // of the bytes at each step: of equal peaks the one with less around it
    bytes_t living;  // after it
    std::uint32_t from, op;
  };
  struct local_storage {
    bytes_t bytes;
    set touchers;        // in the window
    std::uint8_t maker;  // 64: none of the window
    bool stays;          // after the window
  };
  struct local_takeover {
    std::uint32_t from, to;
  };
  struct local_op {
    set needs;
    bytes_t workspace, makes;
    std::uint32_t storages_begin, storages_end;  // touched
    std::uint32_t takeovers_begin, takeovers_end;
  };

  void fill(schedule const& order, table<op_id, std::uint32_t> const& at, table<storage_id, live_range> const& live,
            std::uint32_t begin, std::uint32_t n) {
    ops_.clear(), storages_.clear(), touched_.clear(), takeovers_.clear();
    begin_ = begin, order_ = &order;
    auto const local = [&](storage_id s) {
      if (place_[s] == 0) {
        auto const m = facts_.maker(s);
        bool const here = m != nothing<op_id> && at[m] >= begin && at[m] < begin + n;
        storages_.push_back({facts_.bytes(s), 0, here ? static_cast<std::uint8_t>(at[m] - begin) : std::uint8_t{64},
                             facts_.is_kept(s) || live[s].last >= begin + n});
        place_[s] = static_cast<std::uint32_t>(storages_.size());
        known_.push_back(s);
      }
      return place_[s] - 1;
    };
    for (std::uint32_t k = 0; k < n; ++k) {
      op_id const o = order[begin + k];
      local_op x{0, facts_.workspace(o),
                 0, static_cast<std::uint32_t>(touched_.size()),
                 0, static_cast<std::uint32_t>(takeovers_.size()),
                 0};
      for (auto b : facts_.after(o))
        if (auto const p = at[b]; p >= begin && p < begin + n) x.needs |= set{1} << (p - begin);
      for (auto s : facts_.touches(o)) {
        auto const l = local(s);
        storages_[l].touchers |= set{1} << k;
        touched_.push_back(l);
      }
      for (auto s : facts_.makes(o)) x.makes += facts_.bytes(s);
      if (!facts_.takeovers().empty())
        for (auto c : facts_.takeovers(o)) takeovers_.push_back({local(c.from), local(c.to)});
      x.storages_end = static_cast<std::uint32_t>(touched_.size());
      x.takeovers_end = static_cast<std::uint32_t>(takeovers_.size());
      ops_.push_back(x);
    }
    for (auto s : known_) place_[s] = 0;
    known_.clear();
  }

  /// What running op k after the ops of `s` comes to: bytes while it runs, and after it.
  void extend(state const& s, std::uint32_t k, bytes_t& now, bytes_t& then) {
    auto const& x = ops_[k];
    set const done = s.done | set{1} << k;
    now = s.living + x.workspace + x.makes, then = s.living + x.makes;
    for (auto i = x.storages_begin; i < x.storages_end; ++i) {
      auto const& t = storages_[touched_[i]];
      if (!t.stays && (t.touchers & ~done) == 0) then -= t.bytes;
    }
    gave_.clear(), took_.clear();
    for (auto i = x.takeovers_begin; i < x.takeovers_end; ++i) {
      auto const [from, to] = takeovers_[i];
      auto const& f = storages_[from];
      if (f.stays || (f.touchers & ~done) != 0) continue;
      if (std::find(gave_.begin(), gave_.end(), from) != gave_.end()) continue;
      if (std::find(took_.begin(), took_.end(), to) != took_.end()) continue;
      gave_.push_back(from), took_.push_back(to);
      now -= storages_[to].bytes;
    }
  }

  /// False if there are more sets than that.
  bool run(std::size_t most_sets) {
    auto const n = static_cast<std::uint32_t>(ops_.size());
    set const all = n == 64 ? ~set{0} : (set{1} << n) - 1;
    states_.clear();
    states_.push_back(nothing_done());
    std::size_t layer = 0;
    for (std::uint32_t step = 0; step < n; ++step) {
      auto const layer_end = states_.size();
      slots_.assign(std::bit_ceil(2 * (layer_end - layer) * 2 + 16), no_id);
      for (auto from = layer; from < layer_end; ++from)
        for (std::uint32_t k = 0; k < n; ++k) {
          if ((states_[from].done >> k & 1) || (ops_[k].needs & ~states_[from].done)) continue;
          bytes_t now = 0, then = 0;
          extend(states_[from], k, now, then);
          state const next{states_[from].done | set{1} << k, std::max(states_[from].peak, now),
                           states_[from].sum + now,          then,
                           static_cast<std::uint32_t>(from), k};
          auto const slot = slot_of(next.done);
          if (slots_[slot] == no_id) {
            if (states_.size() == most_sets) return false;
            slots_[slot] = static_cast<std::uint32_t>(states_.size());
            states_.push_back(next);
            if (2 * (states_.size() - layer_end) > slots_.size()) grow(layer_end);
          } else if (auto& have = states_[slots_[slot]];
                     next.peak < have.peak || (next.peak == have.peak && next.sum < have.sum)) {
            have = next;
          }
        }
      layer = layer_end;
    }
    if (states_.back().done != all) return false;  // a cycle
    best_peak_ = states_.back().peak, best_sum_ = states_.back().sum;
    measure_as_it_stands();
    best_.resize(n);
    for (std::size_t at = n, s = states_.size() - 1; at-- > 0; s = states_[s].from)
      best_[at] = (*order_)[begin_ + states_[s].op];
    return true;
  }
  void measure_as_it_stands() {
    state s = nothing_done();
    for (std::uint32_t k = 0; k < ops_.size(); ++k) {
      bytes_t now = 0, then = 0;
      extend(s, k, now, then);
      s.peak = std::max(s.peak, now), s.sum += now, s.living = then, s.done |= set{1} << k;
    }
    peak_ = s.peak, sum_ = s.sum;
  }
  // Bytes that live through the whole window count as nothing: only differences matter.
  static state nothing_done() { return {0, std::numeric_limits<bytes_t>::min() / 2, 0, 0, no_id, 0}; }

  std::size_t slot_of(set done) const {
    auto at = static_cast<std::size_t>(scramble(done)) & (slots_.size() - 1);
    while (slots_[at] != no_id && states_[slots_[at]].done != done) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow(std::size_t first) {
    slots_.assign(2 * slots_.size(), no_id);
    for (auto s = first; s < states_.size(); ++s) slots_[slot_of(states_[s].done)] = static_cast<std::uint32_t>(s);
  }

  flow_facts const& facts_;
  table<storage_id, std::uint32_t> place_;  // while it fills: one more than a storage's in storages_; 0: none
  schedule const* order_ = nullptr;
  std::uint32_t begin_ = 0;
  plain_vector<local_op> ops_;
  plain_vector<local_storage> storages_;
  plain_vector<std::uint32_t> touched_;
  plain_vector<local_takeover> takeovers_;
  plain_vector<storage_id> known_;
  plain_vector<state> states_;
  plain_vector<std::uint32_t> slots_;
  plain_vector<std::uint32_t> gave_, took_;
  plain_vector<op_id> best_;
  bytes_t best_peak_ = 0, best_sum_ = 0, peak_ = 0, sum_ = 0;
};

}  // namespace detail

/// Makes the peak of an order lower where its ops can be put in a better order within windows. For graphs without
/// transfers, whose bytes depend on time: others keep their order.
struct exact_windows {
  static constexpr std::uint32_t most_ops = detail::window_order::most_ops;
  std::uint32_t ops = 48;   // of a window, most_ops at most
  std::size_t sets = 5000;  // of ops that may have run, of a window: shorter ones are taken where there would be more
  int rounds = 4;           // over the order, at most
  double near = 0.03;       // windows are put where the bytes are as near to the peak, as a part of it

  /// The order must be valid. The peak is at most the given order's. O(rounds * (ops + edges)), and for each window where
  /// the bytes are near to the peak O(sets * ops of the window).
  schedule operator()(flow_facts const& facts, schedule order) const;
  template <dataflow_graph G>
  schedule operator()(G const& g, schedule const& order, memory_options options = {}) const {
    return (*this)(flow_facts(g, no_cost{}, options), order);
  }
};

}  // namespace neap::inline v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/schedule/impl/exact_windows.ipp>
#endif
