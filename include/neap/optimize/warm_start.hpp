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

#include <concepts>
#include <vector>

namespace neap { inline namespace v0 {

/// Plans to begin with. Promise: each computes what the graph computes, as verify_plan() finds (verify/plan_verifier.hpp);
/// plans of optimize() do. A plan that meets the limits, with its addresses, bounds the answer: a search returns nothing
/// worse. One that does not is still explored from. What a plan has that the search's moves do not make stays in it.
class warm_start {
 public:
  warm_start();
  warm_start(warm_start const&);
  warm_start(warm_start&&) noexcept;
  warm_start& operator=(warm_start const&);
  warm_start& operator=(warm_start&&) noexcept;
  ~warm_start();  // all of them as the compiler would write them, but only once
  /// A plan, or the answer of optimize(), for an external graph too.
  template <class Answer>
    requires(!std::same_as<Answer, warm_start>)
  explicit warm_start(Answer const& answer) {
    if constexpr (requires { answer.searched.graph; }) add(answer.searched);
    else if constexpr (requires { answer.placed.graph; }) add(answer.placed);
    else add(answer);
  }
  void add(plan const& p) { plans_.push_back({placed_steps(p), op_graph(p.graph), p.original}); }
  void add(warm_start more);
  std::vector<plan> const& plans() const { return plans_; }
  /// Whether any plan has ops in parts; ops that rules made.
  bool runs_in_parts() const;
  bool is_rewritten() const;

  /// Plans of the graph with digest `program` become plans of that with digest `searched`: the same with more pins.
  void rebind(digest const& program, digest const& searched);

 private:
  std::vector<plan> plans_;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/warm_start.ipp>
#endif
