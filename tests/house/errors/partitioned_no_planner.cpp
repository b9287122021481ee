// expect: neap: this is no memory planner: it lacks  neap::memory_plan operator()(neap::memory_problem const&) const
#include <neap/memory/combine.hpp>

struct bad {
  int operator()(neap::memory_problem const&) const { return 1; }
};
auto const planner = neap::partitioned(bad{});
