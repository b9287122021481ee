// Where a search over the use-intervals of a graph of blocks stands (option_gaps.hpp): which option each block runs with and
// in which phase it saves, what is held and loaded when, and what time and peak of each phase follow.
#pragma once

#include <neap/blocks/remat_facts.hpp>
#include <neap/blocks/use_intervals.hpp>
#include <neap/plan/block_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// What is chosen for a block: its option, and the phase whose forward saves.
struct block_choice {
  std::uint32_t option = 0, since = 0;
  friend bool operator==(block_choice const&, block_choice const&) = default;
};

/// A graph of blocks as the search reads it, which check() passes, with max_data data at most; outlives this.
struct block_graph_facts {
  static constexpr std::size_t max_data = 256;
  using set = value_set<max_data / 64>;

  explicit block_graph_facts(block_graph const& g);

  std::uint32_t back_of(std::uint32_t block) const { return phases - 1 - block; }
  std::uint32_t main_of(std::uint32_t phase) const { return phase < blocks ? phase : phases - 1 - phase; }
  bool can_leave(std::uint32_t datum) const { return !graph.move_time.empty() && graph.move_time[datum] >= 0; }
  std::int64_t bytes_of(set const& s) const;

  block_graph const& graph;
  std::uint32_t blocks, phases;
  std::vector<std::uint32_t> maker;                           // by datum
  std::vector<set> reads, makes;                              // by block
  std::vector<std::vector<set>> again_reads, backward_reads;  // by block and option
  std::vector<use_interval> intervals;
  double time_once = 0;         // with the quickest option of each block
  std::int64_t bytes_once = 0;  // of all data and of the largest options
};

/// Phases of a graph of blocks, of which a move counts again only those that it touches: a move is a few changes by
/// set_interval() and set_block(), then evaluate(); roll_back() takes it back.
class block_phases {
 public:
  using set = block_graph_facts::set;
  struct cost {
    double time = 0;
    std::int64_t peak = 0;
  };
  struct place {
    std::vector<interval_ends> ends;    // by interval
    std::vector<block_choice> choices;  // by block
  };

  /// At first nothing is held that need not be, and every block saves with its first option.
  explicit block_phases(block_graph const& g) : f_(g), g_(g) { begin(); }

  block_graph_facts const& facts() const { return f_; }
  interval_ends const& ends(std::uint32_t i) const { return now_.ends[i]; }
  block_choice const& choice(std::uint32_t block) const { return now_.choices[block]; }
  place const& where() const { return now_; }
  std::vector<cost> const& phases() const { return phases_; }
  double time() const { return time_; }
  std::int64_t peak() const { return peak_; }

  void set_interval(std::uint32_t i, interval_ends const& now);
  void set_block(std::uint32_t k, block_choice const& now);
  void evaluate();
  void roll_back();
  /// Forgets how to roll back: the move stands.
  void keep() { changes_.clear(); }
  bool moved() const { return !changes_.empty(); }
  void restore(place const& p);

  block_graph_answer answer();

 private:
  struct change {
    bool of_interval;
    std::uint32_t index;
    interval_ends ends;
    block_choice block;
  };
  struct run {
    std::uint32_t block;
    block_graph_step::action what;
  };

  void begin();

  static bool loads(use_interval const& g, interval_ends const& e) { return e.away && !g.last && e.until < e.since; }
  /// Makes `held_` follow; phases in which that changes something are dirty.
  void put_interval(std::uint32_t i, interval_ends const& now, std::optional<interval_ends> const& old);
  void take_block(std::uint32_t k, bool in);
  void put_block(std::uint32_t k, block_choice const& now);
  void mark(std::uint32_t t) {
    if (!dirty_[t]) dirty_[t] = 1, marked_.push_back(t);
  }

  set const& reads_of(run const& r) const;

  /// What runs in a phase, from the last to the first, if `in` is there when it begins. Gives the bytes that are saved
  /// while the last one runs, its own left out.
  std::int64_t find_runs(std::uint32_t t, set const& in);
  /// Time and peak of one run, as the block's option says.
  cost cost_alone(run const& r) const;
  /// Time and peak of a phase, from what is held into it and out of it; appends its steps.
  cost phase_cost(std::uint32_t t, std::vector<block_graph_step>* steps = nullptr);
  /// Appends the steps of what find_runs() has found; `alive` must be there in front of it, `loaded` of it is loaded.
  void add_steps(std::uint32_t t, set const& alive, set const& loaded, std::vector<block_graph_step>& steps) const;
  void sum_up() {
    time_ = 0, peak_ = 0;
    for (auto const& c : phases_) time_ += c.time, peak_ = std::max(peak_, c.peak);
  }
  block_graph_facts f_;
  block_graph const& g_;
  // Where the search stands:
  place now_;
  std::vector<set> held_;  // by phase: there when it begins
  std::vector<std::int64_t> held_bytes_;
  std::vector<set> loaded_;  // by phase: loaded when it begins
  std::vector<std::int64_t> saved_at_;
  std::vector<std::vector<std::uint32_t>> forced_;  // by phase: blocks that save in it, though it is not theirs
  std::vector<cost> phases_;
  double time_ = 0;
  std::int64_t peak_ = 0;
  // Of a move:
  std::vector<change> changes_;
  std::vector<unsigned char> dirty_;
  std::vector<std::uint32_t> marked_;
  std::vector<std::pair<std::uint32_t, cost>> before_;
  std::vector<run> runs_;
  std::vector<set> after_;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/block_phases.ipp>
#endif
