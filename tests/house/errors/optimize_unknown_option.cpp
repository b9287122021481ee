// expect: neap: optimize does not know this option. It takes limits, a time_budget, memory_options
#include <neap/ir/standard_operators.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>

auto const found = neap::optimize(neap::graph{}, neap::rematerialize{}, 2e9);
