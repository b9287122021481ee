// What planning makes of templates for neap's graph, made once in a program that is compiled apart
// (core/separate_compilation.hpp).
#pragma once

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/optimize/search.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/flow_facts.hpp>
#include <neap/simulate/lower_bound.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include <type_traits>

namespace neap { inline namespace v0 {

NEAP_INSTANTIATE_ONCE(void flow_facts::assign_storages(op_graph const&));
NEAP_INSTANTIATE_ONCE(void flow_facts::find_takeovers(op_graph const&, op_id));
NEAP_INSTANTIATE_ONCE(std::size_t flow_facts::assign_ops(op_graph const&, no_cost const&));
NEAP_INSTANTIATE_ONCE(std::size_t flow_facts::assign_ops(op_graph const&, roofline const&));
NEAP_INSTANTIATE_ONCE(std::size_t flow_facts::assign_ops(op_graph const&, given_or<roofline> const&));

NEAP_INSTANTIATE_ONCE(peak_bound peak_lower_bound(op_graph const&, flow_facts const&, bool));
NEAP_INSTANTIATE_ONCE(simulation simulate(op_graph const&, schedule const&, roofline const&, memory_options));
NEAP_INSTANTIATE_ONCE(placed_steps make_plan(op_graph const&, schedule const&, simulation const&, memory_options,
                                             default_planner const&));
NEAP_INSTANTIATE_ONCE(plan make_plan(candidate, op_graph const&, memory_options, default_planner const&));

NEAP_INSTANTIATE_ONCE(seconds_t roofline::operator()(op_graph const&, op_id) const);
NEAP_INSTANTIATE_ONCE(seconds_t roofline::given(op_graph const&, op_id) const);
NEAP_INSTANTIATE_ONCE(seconds_t given_or<roofline>::operator()(op_graph const&, op_id) const);

NEAP_INSTANTIATE_ONCE(
    auto any_mutator::erased(std::remove_const_t<decltype(default_moves)>)->std::shared_ptr<any_mutator::base const>);

}}  // namespace neap::v0
