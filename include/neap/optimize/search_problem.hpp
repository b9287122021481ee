// What a search is of: the program, the options, and what follows from these alone.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/optimize/search_policy.hpp>

namespace neap { inline namespace v0 { namespace detail {

struct search_problem {
  /// Program and options outlive it.
  template <class Moves>
  search_problem(op_graph const& program, Moves const& moves, search_options const& asked_for)
      : graph(program),
        options(asked_for),
        policy(asked_for.policy),
        allowed(allowed_by(moves)),
        may_run_again(program.op_count(), false) {
    if (allowed.recompute || !allowed.filtered)
      for (auto o : program.ops()) may_run_again[index(o)] = flow::is_recomputable(program, o);
  }

  op_graph const& graph;  // the program as it came
  search_options const& options;
  search_policy const& policy;
  permissions const allowed;
  // By op of the program. A pipeline that recomputes what passes a filter leaves nothing to seeds, which do not know the
  // filter.
  plain_vector<bool> may_run_again;
  objective limits;  // the user's, once the program is evaluated

  /// Starts from outside alone make candidates, no moves do: one epoch without end, whose effort the iterations say.
  bool is_for_solvers() const {
    return options.starts && !allowed.recompute && !(allowed.swap > 0) && !allowed.cut && !allowed.rewrite;
  }
};

}}}  // namespace neap::v0::detail
