// expect: neap: this is no memory planner: it lacks  neap::memory_plan operator()(neap::memory_problem const&) const
#include <neap/ir/standard_operators.hpp>
#include <neap/memory/make_plan.hpp>

struct bad {
  int operator()(neap::memory_problem const&) const { return 1; }
};
auto f(neap::candidate const& c, neap::graph const& g) { return neap::make_plan(c, g, {}, bad{}); }
