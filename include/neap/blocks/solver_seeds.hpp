// Solvers' plans as candidates for a search to start from: the program as a chain of blocks, solved by rk-Rotor for all
// budgets at once, and of its answers the quickest that meets the search's goal, by the search's own simulator. Where no
// answer meets a limit of memory, or the smallest peak is wanted, blocks are cut smaller, too. Where the blocks are no chain,
// as a graph of blocks, too, solved for a budget that is moved until the simulator agrees with it.
//
//   neap::optimize(step, moves, neap::memory_limit{2_GiB}, neap::solver_seeds());             // all of them
//   neap::optimize(step, neap::no_moves{}, neap::memory_limit{2_GiB}, neap::solver_seeds({.rotor = true}));
//
// Not in neap/neap.hpp: blocks and solvers cost a second to compile.
#pragma once

#include <neap/blocks/chain_solver.hpp>
#include <neap/optimize/starting_points.hpp>

#include <functional>
#include <memory>

namespace neap { inline namespace v0 {

/// Which solvers make candidates.
struct solver_choice {
  bool rotor = false;      // blocks that save all or their input alone
  bool checkmate = false;  // the whole program as one block, where it is small enough
  bool hierarchy = false;  // blocks with options, equal ones solved once; a chain of them, or a graph
  double link = 0;  // bytes a second, by which values may leave while their blocks pause; 0: what the moves allow
  std::int64_t work = 300'000;   // evaluations of use-gaps at most, for all blocks together, and 1,000 a candidate that
                                 // the search judges
  std::size_t max_values = 150;  // of a program that checkmate takes on
  friend bool operator==(solver_choice const&, solver_choice const&) = default;
};
inline constexpr solver_choice all_solvers{.rotor = true, .checkmate = true, .hierarchy = true};

/// Solves a block within limits in so many seconds: Checkmate's integer program by a linear_solver, say (checkmate_milp.hpp).
using block_program = std::function<remat_answer(remat_problem const&, remat_limits const&, double seconds)>;

/// Whether a program has what each of these solvers works on, and, if not, why. O(ops + edges) for one block or for a cut.
status can_solve(op_graph const& g, schedule const& order, solver_choice const& which);

/// Starting points for `optimize`. Where a program has no blocks to choose between, there are none. `program`: what
/// checkmate solves its block by, in place of search over use-gaps.
std::shared_ptr<search_starts const> solver_seeds(solver_choice const& which = all_solvers,
                                                  block_program const& program = {});

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/solver_seeds.ipp>
#endif
