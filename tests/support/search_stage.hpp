// A search whose orders are offered and whose first epoch has begun, for tests of single stages.
#pragma once

#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/optimize/search_callables.hpp>
#include <neap/optimize/search_run.hpp>
#include <neap/optimize/stages/initial_orders.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/roofline.hpp>

#include "quality_row.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace neap::testing {

class search_stage {
 public:
  using run_type = neap::detail::search_run;
  using state_type = run_type::state_type;
  using node_ptr = state_type::node_ptr;

  /// A graph of quality.csv, with limits as parts of the original's peak and latency; 0: no limit.
  search_stage(std::string const& name, double memory, double latency = 0, search_policy const& policy = {},
               std::shared_ptr<search_starts const> starts = {})
      : program_(graph_named(name)),
        moves_(default_moves_with_fission(program_.link)) {
    options_.starts = std::move(starts);
    if (memory > 0) options_.memory_at_most = memory_limit::of_original(memory);
    if (latency > 0) options_.latency_at_most = latency_limit::of_original(latency);
    options_.time = time_budget(std::chrono::hours(1000));
    options_.policy = policy;
    cost_.other.to_host_bytes_per_second = cost_.other.to_device_bytes_per_second = std::max(program_.link, 1.0);
    run_ = std::make_unique<run_type>(program_.program, moves_, neap::detail::cost_model_ref(cost_),
                                      neap::detail::scheduler_ref(as_mutated{}), options_);
    orders = run_->orders = neap::detail::add_initial_orders(state(), program_.order, {});
    run_->external.begin(orders);
    run_->begin_epoch(state().limits, 1);
  }

  run_type& run() { return *run_; }
  state_type& state() { return run_->state; }
  any_mutator const& moves() const { return moves_; }
  given_or<roofline> const& cost() const { return cost_; }
  /// Whether the best candidate computes what the program does, and is simulated right.
  bool best_is_right() const {
    auto const& c = run_->state.best->state;
    auto const again = simulate(c.graph, c.order, cost_);
    return verify_plan(program_.program, make_plan(c, program_.program), cost_) &&
           again.peak_bytes == c.result.peak_bytes && again.latency == c.result.latency;
  }
  /// Candidates that were judged so far.
  std::size_t judged() const { return run_->state.out.candidates; }

  std::vector<node_ptr> orders;

 private:
  static quality_graph graph_named(std::string const& name) {
    for (auto& g : quality_graphs(NEAP_SOURCE_DIR))
      if (g.name == name) return std::move(g);
    throw std::runtime_error("no graph " + name);
  }

  quality_graph program_;
  given_or<roofline> cost_{roofline::h100_like()};
  search_options options_;
  any_mutator moves_;
  std::unique_ptr<run_type> run_;
};

}  // namespace neap::testing
