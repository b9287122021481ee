// The numbers of the searches for recomputation. They were chosen by hand on bench/remat_blocks.cpp and
// bench/solver_seeds.cpp; answers stay right for any of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// What a part of a solver may spend of the whole: `parts` of `of` of its work, and a share of its seconds.
struct budget_share {
  std::int64_t parts, of;
  double seconds;
  constexpr std::int64_t work(std::int64_t whole) const { return whole / of * parts; }
};
/// What the default solver of a block spends after its search over gaps.
struct default_solver_shares {
  budget_share first_passes, neighbourhoods, proof;
};

struct solver_policy {
  // Prices of bytes in the bound (remat_facts.hpp, remat_prices.hpp): subgradient steps.
  static constexpr int price_rounds = 400;          ///< for a block
  static constexpr int price_rounds_settled = 100;  ///< from the prices of the block without what is settled
  static constexpr int patience_block = 12;         ///< rounds without gain before a smaller step
  static constexpr int patience_state = 3;          ///< the same for one state
  static constexpr double shrink = 0.6;             ///< of the step then
  static constexpr double least_step = 1e-5;
  static constexpr double aim_block = 0.05;  ///< above what is proved, in times of the whole block once
  static constexpr double aim_state = 0.03;
  static constexpr double half_way = 0.4;  ///< of what is wanted, in half of the rounds; less ends the search

  // Exact search (remat_branch_and_bound.hpp).
  static constexpr std::size_t widening = 8;              ///< labels of a pass beside the one before
  static constexpr std::int64_t hurried = 16;             ///< labels and nodes a label when the budget is spent
  static constexpr std::int64_t least_label_nodes = 500;  ///< a label's share of a narrow pass
  static constexpr std::int64_t nodes_a_width = 16;

  // Use intervals (use_gap.hpp, option_gaps.hpp): annealing.
  static constexpr double byte_price = 2;          ///< of a byte over the limit: twice the mean time of a byte
  static constexpr double block_byte_price = 4;    ///< the same of blocks
  static constexpr double hot = 0.6;               ///< in mean times of an op
  static constexpr double coldest = 0.02;          ///< of that
  static constexpr double block_hot = 0.3;         ///< in mean times of a block
  static constexpr double block_coldest = 0.003;   ///< of that
  static constexpr int aims = 8;                   ///< draws for a move at a phase that is over
  static constexpr std::int64_t moves_a_gap = 20;  ///< in the first round for a limit; rounds double
  static constexpr std::int64_t least_moves = 500;
  static constexpr std::int64_t max_moves = 1 << 14;
  static constexpr std::int64_t first_moves_a_choice = 100;  ///< of a graph of blocks: a short round leaves an answer

  // Neighbourhoods (remat_neighbourhoods.hpp).
  static constexpr std::size_t first_values = 10;          ///< free at first
  static constexpr std::size_t first_phases = 8;           ///< the same, by phases
  static constexpr std::size_t least_free = 4;             ///< neighbourhoods do not shrink below
  static constexpr std::int64_t each = 20'000;             ///< nodes of one
  static constexpr std::int64_t set_up = 1'000;            ///< nodes that making one counts as
  static constexpr std::size_t narrow = 64, widest = 512;  ///< labels a phase

  // The default solver of a block (default_remat_solver.hpp): its parts one after the other. Measured on 18 tight chains
  // with skips of bench/remat_blocks.cpp, 30 to 100 ops. With 300,000 nodes 7 are proved, and times are 1.0018 of the best
  // known by the geometric mean. It is the same with small_ops 0 or 30. With 60 one less is proved (1.0020), with 1,000
  // two less (1.0003). 15 nodes a gap move: 1.0022, 240: 1.0062. With 3,000,000 nodes times are equal for all of these.
  static constexpr std::size_t small_ops = 45;          ///< ops of a block that is mostly proved at once, at most
  static constexpr std::int64_t nodes_a_gap_move = 60;  ///< of the budget: so many allow one evaluation of gaps
  static constexpr std::int64_t gap_moves_an_op = 500;  ///< evaluations of gaps, at most
  static constexpr double gap_time = 0.1;               ///< share of the seconds
  static constexpr default_solver_shares small_block{{3, 4, 0.85}, {1, 12, 0.3}, {1, 12, 1}};
  static constexpr default_solver_shares large_block{{1, 8, 0.15}, {1, 3, 0.3}, {1, 2, 1}};
};

}}}  // namespace neap::v0::detail
