// The search behind optimize: best-first with dives, from seeds. Stages stand in optimize/stages/, here are their turns.
//
// It goes in epochs, each with four times the work of the one before (search_budget.hpp): the same from the beginning, with
// the best so far to improve on. Shares of stages are parts of the epoch's work (search_policy.hpp).
//
// Relaxed best-first as in MAGIS (ASPLOS'24), with bytes above the target summed over positions in place of the bare peak,
// so that progress shows before the peak falls. A candidate that cannot beat the best is dropped, and so is one that was
// seen before: the same graph in the same order. Edits that are data (mutate/mutator.hpp) are judged as such, and
// built only where the search goes on from them or may answer with them.
//
// With a latency limit alone, the target moves: each time it is reached it is lowered by 2 %, as far as the limit allows.
// A strategy that is given as an option (search_strategy.hpp) takes the place of dives and of large neighbourhoods.
//
// On several threads the mutations of one candidate are judged side by side and taken up in their order, so that everything
// is as on one. Candidates and their order depend on graph, moves, limits of memory and latency, policy and seed. Iterations
// and the clock only end the search.
#pragma once

#include <neap/mutate/any_mutator.hpp>
#include <neap/optimize/op_names.hpp>
#include <neap/optimize/search_callables.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/optimize/search_run.hpp>
#include <neap/optimize/stages/exploration.hpp>
#include <neap/optimize/stages/initial_orders.hpp>
#include <neap/optimize/stages/polish.hpp>
#include <neap/optimize/stages/rules.hpp>
#include <neap/optimize/stages/smallest_peak.hpp>
#include <neap/optimize/stages/tighter_limits.hpp>
#include <neap/optimize/stages/warm_starts.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

template <class G>
class best_first {
  using run_type = search_run<G>;
  using node_ptr = typename run_type::node_ptr;

 public:
  best_first(G const& program, any_mutator<G> const& moves, cost_model_ref<G> cost, scheduler_ref<G> scheduler,
             search_options const& options)
      : run_(program, moves, cost, scheduler, options) {}

  optimized<G> run(schedule const& original, std::span<schedule const> orders) {
    auto& state = run_.state;
    auto& out = state.out;
    // Each order to start from gets a dive: later the queue would forget those that are far from the target.
    run_.orders = plant_orders(state, original, orders);
    run_.warm = plant_warm_starts(state, run_.placing);
    run_.external.begin(run_.orders);
    polish polishing(state, run_.placing);
    double work = work_of_first_epoch();
    for (;;) {
      run_tighter_epoch(work);
      run_epoch(state.limits, work);
      work *= state.policy.epochs.growth;
      if (!state.budget.ran_out() || state.is_over() || (state.is_free() && out.fits)) break;
      polishing.look_at_answers();
    }
    state.asked = state.limits;
    if (state.limits.limits_memory && run_.placing.answer()->state.result.peak_bytes > out.memory_limit_bytes)
      run_.placing.take_quicker();
    run_.placing.take_answer();
    polishing.finish();
    out.at_peak = content_of_peak(state.best->state);
    out.times = times_of_operators(state.best->state);
    out.best = std::move(state.best->state);
    for (auto const* t = state.best->path.get(); t; t = t->before.get()) out.steps.push_back(t->how);
    std::reverse(out.steps.begin(), out.steps.end());
    state.end();
    return std::move(out);
  }

 private:
  /// In seconds of the meter: some dozens of candidates, judged whole.
  double work_of_first_epoch() const {
    auto const& e = run_.state.policy.epochs;
    if (run_.state.is_for_solvers()) return e.endless_seconds;
    return std::max(e.first_seconds_an_op * static_cast<double>(run_.state.graph.op_count()), e.first_seconds);
  }

  void run_epoch(objective const& limits, double work) {
    run_.begin_epoch(limits, work);
    auto& state = run_.state;
    auto starts = run_.orders;
    state.part = state.asked.limits_memory ? state.policy.epochs.before_addresses : 1;
    // Where an order, or swaps that nothing waits for, meet the limit, nothing else is looked for.
    if (state.asked.limits_memory && !state.is_free()) plant_hidden_swaps(state, starts);
    if (!(state.is_free() && run_.placing.place() && state.out.fits)) plant_and_explore(starts);
    state.part = 1;
    for (node_ptr last; !run_.placing.place_and_end() && state.best != last && !state.out_of_time();) {
      last = state.best;
      run_.external.plant(true, [] {});
      run_.recomputed.plant(starts, true);
      run_.search();
    }
    run_.placing.place_others();
  }

  /// Plants all seeds of the orders to start from, to which a quicker program of the rules joins, and goes on from them.
  void plant_and_explore(std::vector<node_ptr>& starts) {
    auto& state = run_.state;
    auto quicker = apply_rules(state, run_.moves, starts.front(), state.policy.rules.share);
    if (quicker != starts.front()) starts.push_back(std::move(quicker));
    run_.external.plant(false, [&] { search_first_fit(run_, starts); });
    run_.parts.prepare(starts, run_.recomputed);
    auto const orders = starts;
    run_.plant_all(starts);
    if (state.asked.limits_memory && !state.is_met()) search_until_met(run_, orders);
    else if (state.asked.limits_memory) search_cheaper(run_, orders);
    if (!state.asked.limits_memory || state.is_met()) explore(run_, starts);
    if (state.asked.limits_memory && state.is_met()) apply_rules(state, run_.moves, state.best, 1);
  }

  /// An epoch with a part of the work at a tighter limit.
  void run_tighter_epoch(double work) {
    auto& state = run_.state;
    auto const& numbers = state.policy.tighter;
    if (!numbers.on || !state.limits.limits_memory || epochs_++ < numbers.first_epoch || state.is_over()) return;
    auto const before = run_.placing.answer();
    auto const tighter = tighter_limits(state, before->state.result, run_.placing.answer_fits(), epochs_);
    if (!tighter) return;
    state.aside = true;
    run_epoch(*tighter, numbers.share * work);
    state.aside = false;
    if (run_.placing.answer() == before) return;
    state.asked = state.limits;
    state.best = before;
    state.consider(run_.placing.answer());
  }

  run_type run_;
  std::uint32_t epochs_ = 0;  // at the user's limits
};

}  // namespace detail

}}  // namespace neap::v0
