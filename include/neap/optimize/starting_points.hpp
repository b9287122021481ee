// Candidates made elsewhere for a search to start from: solvers of recomputation (solver_seeds.hpp), a plan of
// yesterday, a user's own idea. The search takes them at its begin, and again when its limit has moved; it evaluates each
// as it comes, so the first one that fits is an answer at once, and dives from those that are worth it.
//
//   struct my_starts : neap::search_starts {
//     std::unique_ptr<neap::starting_points> begin(neap::start_from const& from) const override;
//   };
//   neap::optimize(step, moves, neap::memory_limit{2_GiB}, std::make_shared<my_starts const>());
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_policy.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/plan/simulation.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace neap { inline namespace v0 {

/// The candidate that starting points are made of: the program in its original order. All of it outlives them.
struct start_from {
  op_graph const& graph;
  schedule const& order;
  simulation const& result;
  plain_vector<bool> const& may_run_again;  // by op
  double swap = 0;        // values may be stored and loaded, by a link of so many bytes a second; 0: they may not
  bool alone = false;     // nothing else of the search recomputes
  bool no_swaps = false;  // whatever the link: a filter of the pipeline may forbid them
  std::size_t candidates = SIZE_MAX;  // a measure of the effort: a candidate is worth a millisecond
  search_policy policy{};             // of the search
};

/// The answer of a search to a candidate that is handed in.
class start_judge {
 public:
  /// An edited program and an order of it; `how` in words. Endless bytes and seconds if it breaks a pin of the program: it
  /// is refused. Throws neap::error if it is no order.
  virtual plan_cost judge(op_graph g, schedule order, std::string how) = 0;
  /// The last one evaluated is worth a dive, even where it does not fit yet.
  virtual void keep() = 0;
  /// What comes next takes longer than what came before. Where nothing fits yet, the search first goes on for a moment from
  /// what it has.
  virtual void pause() = 0;
  /// Whether the part of the search's budget that starting points may take is used up.
  virtual bool stop() const = 0;
  /// Seconds until the search ends; endless where no clock runs.
  virtual double seconds_left() const = 0;
  /// Work that is left of that part, in seconds of core/work_meter.hpp: what shares are made by. Endless where it is not
  /// limited.
  virtual double work_left() const = 0;

 protected:
  ~start_judge() = default;
};

/// Makes candidates out of one, for a goal that may be another at the next call.
class starting_points {
 public:
  virtual ~starting_points() = default;
  virtual void run(objective const& goal, start_judge& judge) = 0;
};

/// An option of a search. Promise: candidates compute what the program computes; equal goals give equal candidates, as
/// long as judge.stop() does not end them.
class search_starts {
 public:
  virtual ~search_starts() = default;
  virtual std::unique_ptr<starting_points> begin(start_from const& from) const = 0;
};

}}  // namespace neap::v0
