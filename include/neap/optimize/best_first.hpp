// The search behind optimize: best-first with dives, from seeds. search_stages.hpp lists its stages.
//
// It goes in epochs, each with four times the work of the one before (search_budget.hpp): each starts from the initial orders
// and keeps the incumbent. Shares of stages are parts of the epoch's work (search_policy.hpp).
//
// Relaxed best-first as in MAGIS (ASPLOS'24), with bytes above the target summed over positions in place of the bare peak,
// so that progress shows before the peak falls. A candidate that cannot beat the best is dropped, and so is a duplicate: the
// same graph in the same order. Edits that are data (mutate/mutator.hpp) are evaluated as such, and built only where the
// search goes on from them or may answer with them.
//
// With a latency limit alone, the target moves: each time it is reached it is lowered by 2 %, as far as the limit allows.
// A strategy as an option (search_strategy.hpp) takes the place of dives and of large neighbourhoods.
//
// On several threads the mutations of one candidate are evaluated side by side and admitted in their order, so that
// everything is as on one. Candidates and their order depend on graph, moves, limits of memory and latency, policy and seed.
// Iterations and the clock only end the search.
#pragma once

#include <neap/mutate/any_mutator.hpp>
#include <neap/optimize/op_names.hpp>
#include <neap/optimize/search_callables.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/optimize/search_stages.hpp>
#include <neap/optimize/stages/initial_orders.hpp>
#include <neap/optimize/stages/polish.hpp>
#include <neap/optimize/stages/tighter_limits.hpp>
#include <neap/optimize/stages/warm_starts.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

class best_first {
 public:
  best_first(op_graph const& program, any_mutator const& moves, cost_model_ref cost, scheduler_ref scheduler,
             search_options const& options)
      : run_(program, moves, cost, scheduler, options) {}

  optimized run(schedule const& original, std::span<schedule const> orders) {
    auto& state = run_.state;
    add_first_candidates(original, orders);
    polish polishing(state, run_.placing);
    double work = work_of_first_epoch();
    for (;;) {
      run_tighter_epoch(work);
      run_epoch(run_, state.limits, work);
      work *= state.policy.epochs.growth;
      if (!state.budget.ran_out() || state.is_over() || (state.is_free() && state.out.fits)) break;
      stage_scope const recorded(state, "polish");
      polishing.look_at_answers();
    }
    finish(polishing);
    return std::move(state.out);
  }

 private:
  void add_first_candidates(schedule const& original, std::span<schedule const> orders) {
    {
      stage_scope const recorded(run_.state, "initial_orders");
      run_.orders = add_initial_orders(run_.state, original, orders);
    }
    stage_scope const recorded(run_.state, "warm_starts");
    run_.warm = add_warm_starts(run_.state, run_.placing);
    run_.external.begin(run_.orders);
  }
  /// In seconds of the meter: some dozens of candidates, simulated whole.
  double work_of_first_epoch() const {
    auto const& e = run_.state.policy.epochs;
    if (run_.state.is_for_solvers()) return e.endless_seconds;
    return std::max(e.first_seconds_an_op * static_cast<double>(run_.state.graph.op_count()), e.first_seconds);
  }
  /// An epoch with a part of the work at a tighter limit.
  void run_tighter_epoch(double work) {
    auto& state = run_.state;
    auto const& numbers = state.policy.tighter;
    if (!numbers.on || !state.limits.limits_memory || epochs_++ < numbers.first_epoch || state.is_over()) return;
    auto const before = run_.placing.answer();
    auto const tighter = tighter_limits(state, before->state.result, run_.placing.answer_fits(), epochs_);
    if (!tighter) return;
    state.is_exploratory = true;
    run_epoch(run_, *tighter, numbers.share * work);
    state.is_exploratory = false;
    if (run_.placing.answer() == before) return;
    state.active_limits = state.limits;
    state.best = before;
    state.consider(run_.placing.answer());
  }
  /// The answer, polished, and what the outcome has of it.
  void finish(polish& polishing) {
    auto& state = run_.state;
    auto& out = state.out;
    {
      stage_scope const recorded(state, "polish");
      state.active_limits = state.limits;
      if (state.limits.limits_memory && run_.placing.answer()->state.result.peak_bytes > out.memory_limit_bytes)
        run_.placing.prefer_quicker_if_unmet();
      run_.placing.use_answer();
      polishing.finish();
    }
    for (auto const* p = state.best->path.get(); p; p = p->before.get()) out.steps.push_back(p->last);
    std::reverse(out.steps.begin(), out.steps.end());
    out.at_peak = peak_content_of(state.best->state);
    out.times = times_of_operators(state.best->state);
    out.best = std::move(state.best->state);
    state.end();
  }

  search_run run_;
  std::uint32_t epochs_ = 0;  // at the user's limits
};

}  // namespace detail

}}  // namespace neap::v0
