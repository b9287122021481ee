// Solvers' plans as candidates for a search to start from: the program as a chain of blocks, solved by rk-Rotor for all
// budgets at once, and of its answers the quickest that meets the search's goal, by the search's own simulator.
//
//   neap::optimize(step, moves, neap::memory_limit{2_GiB}, neap::solver_seeds());             // all of them
//   neap::optimize(step, neap::no_moves{}, neap::memory_limit{2_GiB}, neap::solver_seeds({.rotor = true}));
//
// Not in neap/neap.hpp: blocks and solvers cost a second to compile.
#pragma once

#include <neap/mutate/no_moves.hpp>
#include <neap/optimize/chain_solver.hpp>
#include <neap/optimize/starting_points.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace neap::inline v0 {

/// Which solvers make candidates.
struct solver_choice {
  bool rotor = false;             // blocks that save all or their input alone
  bool checkmate = false;         // the whole program as one block, where it is small enough
  bool hierarchy = false;         // blocks with options, solved once a class
  std::int64_t work = 300'000;    // evaluations of use-gaps at most, for all blocks together
  std::size_t most_values = 150;  // of a program that checkmate takes on
  friend bool operator==(solver_choice const&, solver_choice const&) = default;
};
inline constexpr solver_choice all_solvers{.rotor = true, .checkmate = true, .hierarchy = true};

namespace detail {

/// Of a chain's front, by the number of its point, what meets a goal.
class front_search {
 public:
  front_search(chain_solver const& chain, char const* name, objective const& goal, start_judge& judge)
      : chain_(chain),
        name_(name),
        goal_(goal),
        judge_(judge) {}

  /// `keep`: what is best, and some that nearly meet the goal, are worth dives.
  void run(bool keep) {
    // Along the front the peak rises and time falls, nearly: the last point that meets a limit of memory, the first that
    // meets one of time, by halves; then once more what is around it.
    std::size_t low = 0, high = chain_.front().size();
    while (low < high && !judge_.stop()) {
      auto const middle = low + (high - low) / 2;
      auto const v = judge_point(middle);
      bool const up = goal_.limits_memory ? v && v->peak <= goal_.memory : !v || v->latency > goal_.latency;
      if (up) low = middle + 1;
      else high = middle;
    }
    auto const from = low > 0 ? low - 1 : 0;
    for (std::size_t k = from; keep && k < from + 4 && k < chain_.front().size() && !judge_.stop(); ++k) {
      auto const v = judge_point(k);
      if (v && v->latency <= goal_.latency && v->peak <= most_peak()) judge_.keep();
    }
  }

 private:
  /// Of candidates that are worth a dive.
  bytes_t most_peak() const { return goal_.limits_memory ? goal_.memory + goal_.memory / 8 : goal_.memory; }
  std::optional<verdict> judge_point(std::size_t k) {
    auto const& point = chain_.front()[k];
    auto e = chain_.expand<op_graph>(point.budget);
    if (!e) return std::nullopt;
    bytes_t const budget = point.budget * chain_.slot_bytes();
    auto how = name_ + (" for " + std::to_string(budget) + " bytes of its own");
    return judge_.judge(std::move(e->graph), std::move(e->order), std::move(how));
  }

  chain_solver const& chain_;
  char const* name_;
  objective const& goal_;
  start_judge& judge_;
};

/// Solves blocks of up to so many values, while there is time.
struct timed_gaps {
  start_judge const& judge;
  std::int64_t work;  // evaluations a block
  std::size_t most_values = SIZE_MAX;
  std::vector<remat_answer> operator()(remat_problem const& p, std::span<remat_limits const> limits) const {
    if (p.values.size() > most_values || judge.stop()) return {};
    auto const enough = 300 * static_cast<std::int64_t>(p.values.size());
    return use_gap{{.work = std::min(work, enough), .seconds = judge.seconds_left() / 4}}.front(p, limits);
  }
};

class solver_starts final : public starting_points {
 public:
  solver_starts(solver_choice const& which, start_from const& from) : which_(which), from_(from) {}

  void run(objective const& goal, start_judge& judge) override {
    // The quickest to make first, so that there is an answer soon.
    if (which_.rotor)
      search(rotor_, "rotor", goal, judge, !which_.hierarchy, [&] { return make(plain_blocks{}, {.levels = {0, 0}}); });
    if (which_.hierarchy)
      search(blocks_, "options of blocks", goal, judge, true, [&] {
        return make(timed_gaps{judge, share_of_block()}, {});
      });
    if (which_.checkmate)
      search(whole_, "checkmate", goal, judge, true, [&] {
        return make(timed_gaps{judge, which_.work, which_.most_values},
                    {.slots = 4000, .levels = {0, 24}, .one_block = true});
      });
  }

 private:
  using chain = std::unique_ptr<chain_solver>;
  template <class Make>
  static void search(chain& c, char const* name, objective const& goal, start_judge& judge, bool keep,
                     Make const& made) {
    if (judge.stop()) return;
    if (!c) c = made();
    front_search(*c, name, goal, judge).run(keep);
  }
  template <class S>
  chain make(S const& solver, chain_solver_options const& options) const {
    return std::make_unique<chain_solver>(from_.graph, from_.order, from_.result, from_.may_run_again, solver, options);
  }
  /// Of the work, where the number of blocks to solve is not known, a sixteenth.
  std::int64_t share_of_block() const {
    return which_.work / static_cast<std::int64_t>(rotor_ ? std::max<std::size_t>(rotor_->solved_blocks(), 4) : 16);
  }
  solver_choice which_;
  start_from from_;
  chain rotor_, blocks_, whole_;
};

}  // namespace detail

/// Whether a program has what each of these solvers works on, and, if not, why. O(ops + edges) for one block or for a cut.
inline status can_solve(op_graph const& g, schedule const& order, solver_choice const& which) {
  plain_vector<bool> const any(g.op_count(), true);
  simulation no_time;
  no_time.start.resize(order.size()), no_time.end.resize(order.size());
  auto const blocks = [&](bool one) {
    return chain_solver(g, order, no_time, any, plain_blocks{}, {.slots = 1, .levels = {0, 0}, .one_block = one});
  };
  if (which.checkmate) {
    auto const one = blocks(true);
    if (one.empty()) return failure{"it has no forward and backward part that could be told apart"};
    if (one.most_values() > which.most_values)
      return failure{"as one block it has " + std::to_string(one.most_values()) + " values, checkmate takes up to " +
                     std::to_string(which.most_values)};
  }
  if ((which.rotor || which.hierarchy) && blocks(false).empty())
    return failure{"it has no chain of blocks with a forward and a backward part"};
  return {};
}

/// Starting points for `optimize`. Where a program has no blocks to choose between, there are none.
inline std::shared_ptr<search_starts const> solver_seeds(solver_choice const& which = all_solvers) {
  struct starts final : search_starts {
    solver_choice which;
    explicit starts(solver_choice const& w) : which(w) {}
    std::unique_ptr<starting_points> begin(start_from const& from) const override {
      return std::make_unique<detail::solver_starts>(which, from);
    }
  };
  return std::make_shared<starts const>(which);
}

}  // namespace neap::inline v0
