// A warm start, as solvers of integer programs take one: plans of earlier searches of the same graph that a search begins
// with, as incumbents. The limits, the seed, the moves and the cost model of these searches may have been others.
//
//   auto const tight = neap::optimize(step, moves, neap::memory_limit{2_GiB});
//   auto const loose = neap::optimize(step, moves, neap::memory_limit{3_GiB}, neap::warm_start{tight});
//   assert(!tight.fits || loose.placed.latency <= tight.placed.latency);
#pragma once

#include <neap/core/digest.hpp>
#include <neap/ir/graph.hpp>
#include <neap/plan/plan.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap::inline v0 {

/// Plans to begin with. Promise: each computes what the graph computes, as verify_plan() finds (verify/plan_verifier.hpp);
/// plans of optimize() do. A plan that meets the limits, with its addresses, bounds the answer: a search returns nothing
/// worse. One that does not is still explored from. What a plan has that the search's moves do not make stays in it.
class warm_start {
 public:
  warm_start() = default;
  /// A plan, or the answer of optimize(), for an external graph too.
  template <class Answer>
    requires(!std::same_as<Answer, warm_start>)
  explicit warm_start(Answer const& answer) {
    if constexpr (requires { answer.searched.graph; }) add(answer.searched);
    else if constexpr (requires { answer.placed.graph; }) add(answer.placed);
    else add(answer);
  }
  template <class G>
  void add(plan<G> const& p) {
    plans_.push_back({placed_steps(p), op_graph(p.graph), p.original});
  }
  void add(warm_start more) {
    for (auto& p : more.plans_) plans_.push_back(std::move(p));
  }
  std::vector<plan<op_graph>> const& plans() const { return plans_; }
  /// Whether any plan has ops in parts; ops that rules made.
  bool runs_in_parts() const {
    return std::any_of(plans_.begin(), plans_.end(), [](auto const& p) { return p.graph.runs_in_parts(); });
  }
  bool is_rewritten() const {
    for (auto const& p : plans_)
      for (auto o : p.graph.ops())
        if (p.graph.record(o).rewritten) return true;
    return false;
  }

  /// Plans of the graph with digest `program` become plans of that with digest `searched`: the same with more pins.
  void rebind(digest const& program, digest const& searched) {
    for (auto& p : plans_)
      if (p.original == program) p.original = searched;
  }

 private:
  std::vector<plan<op_graph>> plans_;
};

}  // namespace neap::inline v0
