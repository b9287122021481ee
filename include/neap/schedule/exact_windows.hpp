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

namespace neap { inline namespace v0 {

namespace detail {

/// The best order of the ops at positions [begin, end) of an order, everything else as it stands.
class window_order {
 public:
  static constexpr std::uint32_t max_ops = 64;

  explicit window_order(flow_facts const& facts) : facts_(facts), place_(facts.storage_count()) {}

  /// Solves the window from `begin` on, of as many ops, `most` at most, as make at most `max_sets` sets: where it ends.
  /// `at` are the positions of the ops, `live` when the order's storages live.
  std::uint32_t solve(schedule const& order, table<op_id, std::uint32_t> const& at,
                      table<storage_id, live_range> const& live, std::uint32_t begin, std::uint32_t most,
                      std::size_t max_sets) {
    best_peak_ = peak_ = best_sum_ = sum_ = 0;
    auto const end = static_cast<std::uint32_t>(std::min<std::size_t>(order.size(), begin + std::min(most, max_ops)));
    for (auto n = end - begin; n > 1; n -= n / 4 + 1)
      if (fill(order, at, live, begin, n); run(max_sets)) return begin + n;
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
            std::uint32_t begin, std::uint32_t n);

  /// What running op k after the ops of `s` comes to: bytes while it runs, and after it.
  void extend(state const& s, std::uint32_t k, bytes_t& now, bytes_t& then);

  /// False if there are more sets than that.
  bool run(std::size_t max_sets);
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
  static constexpr std::uint32_t max_ops = detail::window_order::max_ops;
  std::uint32_t ops = 48;   // of a window, max_ops at most
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

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/schedule/impl/exact_windows.ipp>
#endif
