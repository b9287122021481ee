// Search over the use-gaps of a graph of blocks and over the blocks' options: one integer says which option a block runs
// with, one in which phase its forward is run to save (the first time or later), and two for each datum and each pair of
// its consecutive uses how long it is held after the one and from when on for the other, and a flag whether it has been
// moved out in between and is loaded there. What must run again follows.
//
//   phases      f0  f1  f2  f3 | b3  b2  b1  b0       block 1 passes in f1, and saves in the phase of b2
//   block 1         pass       |     save back
//
// As in use_gap.hpp a change touches the phases around its ends, and only these are counted again. Simulated annealing,
// deterministic by its seed. Everything that it comes by and that is quicker than all that is as small is kept, and a
// search for a limit starts from there: so one solver answers many limits, each from what the others have found.
#pragma once

#include <neap/blocks/block_phases.hpp>
#include <neap/blocks/remat_budget.hpp>
#include <neap/blocks/solver_policy.hpp>
#include <neap/core/philox.hpp>
#include <neap/plan/block_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

class option_gaps {
 public:
  static constexpr std::size_t max_data = detail::block_graph_facts::max_data;

  /// Of a graph that check() passes, with max_data data at most; outlives the solver.
  explicit option_gaps(block_graph const& g, std::uint64_t seed = 1);

  /// The quickest answer found within a limit of the peak; nothing if none was. Work counts changes that are tried. A byte
  /// over the limit costs `dearer` times what it mostly does: near the smallest peak searches end above a limit otherwise.
  std::optional<block_graph_answer> solve(std::int64_t peak, remat_budget const& budget, double dearer = 1);
  /// Towards a limit that no answer meets: what has the fewest bytes over it, summed over phases, at a price in time. From
  /// what the call before has found. Where the peak is that of one block whatever is done, other phases still fall.
  block_graph_answer approach(std::int64_t peak, remat_budget const& budget);
  /// The quickest that is known within a limit.
  std::optional<block_graph_answer> best(std::int64_t peak);
  /// How many gaps and blocks there are to choose for.
  std::size_t choices() const { return state_.facts().intervals.size() + state_.facts().blocks; }
  /// Peak and time of what is known: each quicker and larger than the one before.
  std::vector<std::pair<std::int64_t, double>> front() const;

 private:
  using place = detail::block_phases::place;
  struct incumbent {
    std::int64_t peak;
    double time;
    place where;
  };

  incumbent const* known_within(std::int64_t peak) const;
  /// Ascending by peak, descending by time.
  void note();

  double score(std::int64_t limit) const;
  /// From what is known, or from `nearest`, which becomes what has the best score.
  void anneal(std::int64_t limit, std::int64_t moves, detail::budget_watch& watch, place* nearest = nullptr);
  std::uint32_t below(std::size_t n) { return draw_.below(static_cast<std::uint32_t>(n)); }
  void draw_move(std::int64_t limit);
  /// At a phase, if there is one to aim at.
  void draw_change(std::uint32_t at);
  void move_interval(std::uint32_t i);
  void move_block(std::uint32_t k);

  block_graph const& g_;
  detail::block_phases state_;
  random_stream draw_;
  double dearness_, dearer_ = 1;
  std::vector<incumbent> known_;
  std::optional<place> nearest_;  // of approach()
  std::vector<std::uint32_t> high_;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/option_gaps.ipp>
#endif
