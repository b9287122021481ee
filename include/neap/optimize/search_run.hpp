// A running search: its state, and the stages that keep something between their turns.
#pragma once

#include <neap/optimize/search_rounds.hpp>
#include <neap/optimize/search_state.hpp>
#include <neap/optimize/stages/dives.hpp>
#include <neap/optimize/stages/external_seeds.hpp>
#include <neap/optimize/stages/neighbourhoods.hpp>
#include <neap/optimize/stages/offloads.hpp>
#include <neap/optimize/stages/partitions.hpp>
#include <neap/optimize/stages/placement.hpp>
#include <neap/optimize/stages/segments.hpp>
#include <neap/optimize/stages/small_programs.hpp>

#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

template <class G>
struct search_run {
  using state_type = search_state<G>;
  using node_ptr = typename state_type::node_ptr;

  search_run(G const& program, any_mutator<G> const& m, cost_model_ref<G> cost, scheduler_ref<G> scheduler,
             search_options const& options)
      : moves(m),
        state(program, m, cost, scheduler, options),
        external(state),
        recomputed(state),
        parts(state),
        placing(state),
        diving(state, m),
        rounds(state, m) {}

  any_mutator<G> const& moves;
  state_type state;
  external_seeds<state_type> external;
  segments<state_type> recomputed;
  partitions<state_type> parts;
  placement<state_type> placing;
  dives<state_type, any_mutator<G>> diving;
  search_rounds<state_type, any_mutator<G>> rounds;  // in place of dives, where a strategy is an option
  std::vector<node_ptr> orders;                      // to start from
  std::vector<node_ptr> warm;                        // plans of the warm start
  std::uint32_t epochs = 0;                          // so far, those at tighter limits included

  bool has_strategy() const { return static_cast<bool>(state.options.strategy); }

  /// An epoch at these limits begins: from the orders again, and what shares of the last one have ended is made anew. What
  /// is known by now is to be improved on.
  void begin_epoch(objective const& limits, double work) {
    state.budget.begin_epoch(work);
    state.asked = limits;
    placing.begin_epoch();
    auto waiting = orders;
    waiting.insert(waiting.end(), warm.begin(), warm.end());
    state.resume(std::move(waiting));
    recomputed.begin_epoch();
    external.begin_epoch();
    parts.begin_epoch();
    diving.begin_epoch();
    ++epochs;
  }
  /// Seeds from the orders to start from, to which the best fissions are added.
  void plant_all(std::vector<node_ptr>& starts) {
    plant_small_program(state);
    parts.plant(starts, recomputed);
    recomputed.plant(starts);
    plant_offloads(state);
  }
  /// The search goes on from what waits, with a part of the budget.
  void search(double part = 1) {
    if (has_strategy()) rounds.run(part);
    else diving.search(part);
  }
  void search_neighbourhoods() {
    if (!has_strategy()) detail::search_neighbourhoods(state, diving, 16 + epochs);
  }
};

}}}  // namespace neap::v0::detail
