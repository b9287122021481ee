// A running search: its state, and the stages that keep something between their turns.
#pragma once

#include <neap/optimize/search_rounds.hpp>
#include <neap/optimize/search_state.hpp>
#include <neap/optimize/stages/dives.hpp>
#include <neap/optimize/stages/external_seeds.hpp>
#include <neap/optimize/stages/partitions.hpp>
#include <neap/optimize/stages/placement.hpp>
#include <neap/optimize/stages/segments.hpp>

#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// When a stage runs (search_stages.hpp). Sub-searches run the seeds and the exploration again, in a scope of their own.
enum class phase { begin, seeds, sub_searches, exploration, answer };

struct search_run {
  using state_type = search_state;
  using node_ptr = typename state_type::node_ptr;

  search_run(op_graph const& program, any_mutator const& m, cost_model_ref cost, scheduler_ref scheduler,
             search_options const& options)
      : moves(m),
        state(program, m, cost, scheduler, options),
        external(state),
        recomputed(state),
        parts(state),
        placing(state),
        diving(state, m),
        rounds(state, m) {}

  any_mutator const& moves;
  state_type state;
  external_seeds external;
  segments recomputed;
  partitions parts;
  placement placing;
  dives diving;
  search_rounds rounds;          // in place of dives, where a strategy is an option
  std::vector<node_ptr> orders;  // of the program
  std::vector<node_ptr> warm;    // plans of the warm start
  std::vector<node_ptr> bases;   // of the epoch: what its seeds are made of, the orders and what rules make of them
  std::vector<node_ptr> starts;  // of the search that runs: the bases and the best fissions

  bool has_strategy() const { return static_cast<bool>(state.options.strategy); }

  /// An epoch at these limits begins: from the orders again, with the incumbent to improve on.
  void begin_epoch(objective const& limits, double work) {
    ++state.epoch;
    state.budget.begin_epoch(work);
    state.active_limits = limits;
    placing.begin_epoch();
    auto waiting = orders;
    waiting.insert(waiting.end(), warm.begin(), warm.end());
    state.restart_from(std::move(waiting));
    recomputed.begin_epoch();
    external.begin_epoch();
    parts.begin_epoch();
    diving.begin_epoch();
    bases = starts = orders;
  }
  /// The search goes on from the open list, with a part of the budget.
  void search(double part = 1) {
    if (has_strategy()) rounds.run(part);
    else diving.search(part);
  }
};

}}}  // namespace neap::v0::detail
