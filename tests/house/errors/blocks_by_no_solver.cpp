// expect: neap: this solves no blocks: it lacks  std::vector<neap::remat_answer> operator()(neap::remat_problem const&, std::span<neap::remat_limits const>) const
#include <neap/blocks/chain_solver.hpp>

struct one_limit {
  neap::remat_answer operator()(neap::remat_problem const&, neap::remat_limits const&) const { return {}; }
};
auto f(neap::op_graph const& g, neap::schedule const& order, neap::simulation const& result,
       neap::plain_vector<bool> const& again) {
  return neap::chain_solver(g, order, result, again, one_limit{});
}
