// expect: neap: the second is no solver that starts from an answer: it lacks  neap::remat_answer improve(
#include <neap/blocks/remat_solver.hpp>
#include <neap/blocks/use_gap.hpp>

struct from_nothing {
  neap::remat_answer operator()(neap::remat_problem const&, neap::remat_limits const&) const { return {}; }
};
auto const solver = neap::seed_then_improve(neap::use_gap{}, from_nothing{});
