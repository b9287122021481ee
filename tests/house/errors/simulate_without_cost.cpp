// expect: neap: this is no cost model of this graph: it lacks  double operator()(G const&, neap::op_id) const
#include <neap/ir/standard_operators.hpp>
#include <neap/simulate/simulator.hpp>

struct of_ops {
  double operator()(neap::op_id) const { return 1; }
};
auto f(neap::graph const& g, neap::schedule const& order) { return neap::simulate(g, order, of_ops{}); }
