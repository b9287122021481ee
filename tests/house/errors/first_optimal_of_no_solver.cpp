// expect: neap: this takes planners, all of them with  neap::memory_plan operator()(neap::memory_problem const&) const, or solvers, all of them with  neap::remat_answer operator()(neap::remat_problem const&, neap::remat_limits const&) const
// also: first_optimal_of_no_solver.cpp
#include <neap/blocks/remat_solver.hpp>
#include <neap/blocks/use_gap.hpp>

struct without_limits {
  neap::remat_answer operator()(neap::remat_problem const&) const { return {}; }
};
auto const solver = neap::first_optimal(neap::use_gap{}, without_limits{});
