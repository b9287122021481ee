// expect: neap: this takes planners, all of them with  neap::memory_plan operator()(neap::memory_problem const&) const, or solvers, all of them with  neap::remat_answer operator()(neap::remat_problem const&, neap::remat_limits const&) const
// also: best_of_no_planner.cpp
#include <neap/memory/combine.hpp>

struct bad {
  int operator()(neap::memory_problem const&) const { return 1; }
};
auto const planner = neap::best_of(neap::default_planner{}, bad{});
