// expect: neap: this is no linear solver: it lacks  neap::linear_answer operator()(neap::linear_problem const&) const
#include <neap/blocks/checkmate_milp.hpp>

struct bad {
  double operator()(neap::linear_problem const&) const { return 1; }
};
neap::checkmate<bad> const solver{};
