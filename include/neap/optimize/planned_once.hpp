// What planning makes for graphs over the standard operators, made once in a program that is compiled apart
// (core/separate_compilation.hpp).
#pragma once

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/optimize/search_call.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/flow_facts.hpp>
#include <neap/simulate/lower_bound.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include <type_traits>

namespace neap { inline namespace v0 {

NEAP_INSTANTIATE_ONCE(void flow_facts::assign_storages(graph const&));
NEAP_INSTANTIATE_ONCE(void flow_facts::find_takeovers(graph const&, op_id));
NEAP_INSTANTIATE_ONCE(std::size_t flow_facts::assign_ops(graph const&, no_cost const&));
NEAP_INSTANTIATE_ONCE(std::size_t flow_facts::assign_ops(graph const&, roofline const&));
NEAP_INSTANTIATE_ONCE(std::size_t flow_facts::assign_ops(graph const&, given_or<roofline> const&));

NEAP_INSTANTIATE_ONCE(peak_bound peak_lower_bound(graph const&, flow_facts const&, bool));
NEAP_INSTANTIATE_ONCE(simulation simulate(graph const&, schedule const&, roofline const&, memory_options));
NEAP_INSTANTIATE_ONCE(placed_steps make_plan(graph const&, schedule const&, simulation const&, memory_options,
                                             default_planner const&));
NEAP_INSTANTIATE_ONCE(plan<graph> make_plan(candidate<graph>, graph const&, memory_options, default_planner const&));

NEAP_INSTANTIATE_ONCE(bool recompute::edit(candidate<graph> const&, replay_facts const&, graph_edit&) const);
NEAP_INSTANTIATE_ONCE(std::string recompute::describe(candidate<graph> const&) const);
NEAP_INSTANTIATE_ONCE(bool swap_out::edit(candidate<graph> const&, replay_facts const&, graph_edit&) const);
NEAP_INSTANTIATE_ONCE(std::string swap_out::describe(candidate<graph> const&) const);

NEAP_INSTANTIATE_ONCE(seconds_t roofline::operator()(graph const&, op_id) const);
NEAP_INSTANTIATE_ONCE(seconds_t roofline::given(graph const&, op_id) const);
NEAP_INSTANTIATE_ONCE(seconds_t given_or<roofline>::operator()(graph const&, op_id) const);

NEAP_INSTANTIATE_ONCE(auto any_mutator<graph>::erased(std::remove_const_t<decltype(default_moves)>)
                          ->std::shared_ptr<any_mutator<graph>::base const>);

namespace detail {
NEAP_INSTANTIATE_ONCE(plain_vector<scored<recompute>> find_recomputations::operator()(candidate<graph> const&) const);
NEAP_INSTANTIATE_ONCE(plain_vector<scored<swap_out>> find_swaps::operator()(candidate<graph> const&) const);
NEAP_INSTANTIATE_ONCE(optimized<graph> search_from(graph const&, any_mutator<graph> const&, cost_model_ref<graph>,
                                                   schedule const&, std::span<schedule const>, search_options const&,
                                                   scheduler_ref<graph>));
NEAP_INSTANTIATE_ONCE(optimized<graph> search_with_pins(graph const&, any_mutator<graph> const&, cost_model_ref<graph>,
                                                        schedule&, search_options&, scheduler_ref<graph>));
NEAP_INSTANTIATE_ONCE(optimized<external_graph> search_from(external_graph const&, any_mutator<external_graph> const&,
                                                            cost_model_ref<external_graph>, schedule const&,
                                                            std::span<schedule const>, search_options const&,
                                                            scheduler_ref<external_graph>));
NEAP_INSTANTIATE_ONCE(optimized<external_graph> search_with_pins(external_graph const&,
                                                                 any_mutator<external_graph> const&,
                                                                 cost_model_ref<external_graph>, schedule&,
                                                                 search_options&, scheduler_ref<external_graph>));
}  // namespace detail

}}  // namespace neap::v0
