// expect: neap: this is no scheduler of this graph: it lacks  neap::schedule operator()(neap::graph const&) const
#include <neap/ir/standard_operators.hpp>
#include <neap/report/planner_benchmark.hpp>

#include <vector>

struct ids_alone {
  std::vector<neap::op_id> operator()(neap::graph const&) const { return {}; }
};
void f(neap::planner_benchmark& table) { table.scheduler("mine", ids_alone{}); }
