// rockmate: a model trained within a budget of bytes, in one call. The training step is traced, cut into blocks, solved
// (blocks/solver_seeds.hpp), searched from there, placed, and bound to the model; what comes back trains. Losses,
// gradients, weights and running statistics are those of the unplanned step, bit by bit, dropout included: what runs again
// draws the same numbers, and nothing that changes anything runs twice. The budget holds from the first step on.
//
//   neap::host_backend backend(2);
//   auto train = neap::rockmate(model, batch, neap::cross_entropy{}, neap::adamw{}, neap::memory_limit{2_GiB},
//                               backend).value();
//   for (auto const& b : batches) loss = train(b);
//
// After Rockmate (Zhao, Gusak, Beaumont et al., ICML 2023), whose promise this is. Not in neap/neap.hpp.
#pragma once

#include <neap/blocks/solver_seeds.hpp>
#include <neap/execute/trainer.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/optimize.hpp>

#include <memory>
#include <utility>

namespace neap { inline namespace v0 {

struct rockmate_options {
  training_options training{};
  search_options search{};  // its limit of memory is the budget
  solver_choice solvers = all_solvers;
  execution_options execution{};

  rockmate_options() { search.time = time_budget(std::chrono::seconds(2)); }
};

/// A training step, its plan, and what runs it. The model stays where it is, and lives as long as this; so does the
/// backend.
template <class Backend = host_backend>
class budgeted_trainer {
 public:
  budgeted_trainer(training_program step, optimized found, Backend& backend, execution_options const& options,
                   std::source_location at)
      : step_(std::make_unique<training_program>(std::move(step))),
        found_(std::move(found)),
        run_(std::make_unique<trainer<Backend>>(*step_, found_.placed, backend, options, at)) {}

  /// One step on a batch; the loss before the update.
  template <class Sample>
  double operator()(Sample const& batch, step_settings const& settings = {},
                    std::source_location at = std::source_location::current()) {
    return (*run_)(batch, settings, at);
  }
  training_program const& step() const { return *step_; }
  /// What the search found: peak, arena, latency, bound.
  optimized const& found() const { return found_; }
  trainer<Backend>& run() { return *run_; }

 private:
  std::unique_ptr<training_program> step_;
  optimized found_;
  std::unique_ptr<trainer<Backend>> run_;
};

/// Fails, with one line that says why, where no plan was found that fits the budget: bytes of all that the step has in
/// memory, weights and states included. Throws neap::error for what training_step refuses.
template <class Model, class Sample, class Loss, class Optimizer, class Backend>
auto rockmate(Model& model, Sample const& sample, Loss const& loss, Optimizer const& optimizer, memory_limit budget,
              Backend& backend, rockmate_options const& options = {},
              std::source_location at = std::source_location::current()) {
  auto step = training_step(model, sample, loss, optimizer, options.training, at);
  using answer = result<budgeted_trainer<Backend>>;
  auto search = options.search;
  search.set(budget).set(solver_seeds(options.solvers));
  auto found = optimize(step, rematerialize{} | truncate(24), search);
  if (!found.fits) return answer(failure{"rockmate: " + found.why_not()});
  return answer(budgeted_trainer<Backend>(std::move(step), std::move(found), backend, options.execution, at));
}

}}  // namespace neap::v0
