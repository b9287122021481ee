// expect: neap: optimize does not know this option. It takes limits, a time_budget, memory_options
#include <neap/ir/standard_operators.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>

#include <vector>

struct ids_alone {  // callable with a search_progress, too, but no callback
  template <class G>
  std::vector<neap::op_id> operator()(G const&) const {
    return {};
  }
};
auto const found = neap::optimize(neap::graph{}, neap::rematerialize{}, ids_alone{});
