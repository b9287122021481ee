// Which results to keep for the backward pass and which to compute again, in one stretch of the order.
//
// Behind the stretch's last position, the turn, much that was made in it is read again. For a price in seconds a byte, the
// least cut of the network below says what is cheaper to keep (its bytes times the price) and what to compute again (its
// seconds): the best choice if each op runs at most twice (the min-cut partitioner of PyTorch's functorch does the same for
// one price without a limit).
//
//   source -> storage that is read behind the turn -> its op -> sink        op behind the cut: computed again
//                    storage <- op that reads it                            edge storage -> op cut: kept
//
// What is computed again must not be there all at once: segments bound it. Walking from the stretch's begin, a segment
// ends where what is kept so far and what the segment makes again fill the budget, at the place where the fewest bytes
// cross for the bytes it covers; what crosses is kept too. Segments at the begin are the longest, because they are made
// again last, when the others' bytes are gone: for a uniform chain that is the schedule of fewest recomputed ops in which
// no op runs three times (Griewank and Walther, Revolve, 2000). What comes last before the turn is kept at another, lower
// price, from where on it fits: it is read first.
#pragma once

#include <neap/core/csr.hpp>
#include <neap/core/min_cut.hpp>
#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/work_meter.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/mutate/gap.hpp>
#include <neap/plan/candidate.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// At one price: what runs again, what is kept, of each stretch.
struct recompute_cut {
  struct part {
    plain_vector<bool> again;  // by position in the stretch
    plain_vector<bool> keeps;  // by row of the stretch: what is read again and kept
  };
  double price = 0;  // seconds a byte; 0: all is kept; infinite: nothing that need not be
  std::vector<part> parts{};
  seconds_t seconds = 0;  // of what runs again
  bytes_t bytes = 0;      // of what is kept
};

/// What a choice comes to, by its own reckoning; a simulator says it exactly.
struct recompute_choice {
  plain_vector<std::uint32_t> dropped;  // by storage: the turn behind which it is gone; no_id: it is kept
  seconds_t seconds = 0;                // of ops that run again
  bool fits = false;                    // in the budget
};

/// What may be dropped of a candidate. O(ops + edges).
struct recompute_facts {
  struct made {
    storage_id id;
    std::uint32_t maker, last_read;  // positions
  };
  op_graph const& graph;
  schedule const& order;
  simulation const& result;
  plain_vector<bool> may_run_again;    // by position
  plain_vector<made> storages;         // that may be dropped, in the order in which they are made
  plain_vector<std::uint32_t> number;  // of a storage in that list; no_id: it is not there

  /// `again(op)` says which ops may run again.
  template <class MayRunAgain>
  recompute_facts(op_graph const& g, schedule const& s, simulation const& r, MayRunAgain&& again)
      : graph(g),
        order(s),
        result(r),
        may_run_again(s.size(), false),
        number(g.storage_count(), no_id) {
    for (std::uint32_t p = 0; p < s.size(); ++p) may_run_again[p] = again(s[p]);
    list();
  }

 private:
  void list();
};

/// The positions [begin, turn], and what is made there and not read from `end` on, as the choice sees it. O(its ops and
/// edges, and those up to the end).
class recompute_stretch {
 public:
  recompute_stretch(recompute_facts const& f, std::uint32_t begin, std::uint32_t turn, std::uint32_t end);

  std::uint32_t turn() const { return turn_; }

  /// Adds its part to a cut.
  void cut(recompute_cut& to) const;

  /// Adds to a choice what to drop so that about `budget` bytes suffice: segments at the front's price, what comes last at
  /// the tail's. The parts are those of this stretch. False, and nothing is added, if they do not suffice.
  bool choose(recompute_cut::part const& front, recompute_cut::part const& tail, bytes_t budget,
              recompute_choice& to) const;
  /// From where on budgets ask for nothing.
  bytes_t peak() const { return peak_; }

 private:
  struct storage_row {
    storage_id id;
    bytes_t bytes;
    std::uint32_t maker;  // position, from the stretch's begin
    bytes_t beside;       // taken by other storages when it is read behind the turn, at most
    bool waits;           // is read behind the turn
    bool ends;            // is overwritten before the turn: it cannot be kept, only made again
  };

  void learn(recompute_facts const& f, std::uint32_t end);

  /// At the positions [begin, end), the bytes of what is made before or read behind them: it waits across another turn,
  /// where it may be dropped.
  plain_vector<bytes_t> waiting_elsewhere(recompute_facts const& f, std::uint32_t end) const;

  /// What reads a version that is updated before the turn cannot run again behind it; nor what reads a storage that is
  /// overwritten there, unless that is made again too.
  void leave_overwritten(op_graph const& g, schedule const& order);

  enum class position : std::uint32_t {};
  friend constexpr std::size_t index(position p) { return static_cast<std::size_t>(p); }

  std::uint32_t begin_, turn_, count_;    // of positions; both are in it
  plain_vector<storage_row> storages_;    // that may be dropped, in the order in which they are made
  plain_vector<std::uint32_t> waiting_;   // rows of those that are read behind the turn
  plain_vector<std::uint32_t> first_of_;  // by position: the first row that is made there or later
  csr<position, std::uint32_t> reads_;    // rows of storages that a position reads
  plain_vector<seconds_t> seconds_;       // of positions
  plain_vector<bool> may_;                // positions that may run again
  bytes_t peak_ = 0;                      // from the begin to where the last of what waits is read
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/recompute_stretch.ipp>
#endif
