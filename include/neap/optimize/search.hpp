// The search behind optimize, with pipeline, cost model and scheduler erased.
#pragma once

#include <neap/ir/graph.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/optimize/search_callables.hpp>
#include <neap/optimize/search_options.hpp>

#include <span>

namespace neap { inline namespace v0 { namespace detail {

/// Searches from orders: `original`, which ratios refer to, and `seeds`. See optimize_from.
optimized search_from(op_graph const& program, any_mutator const& moves, cost_model_ref cost, schedule const& original,
                      std::span<schedule const> seeds, search_options const& options, scheduler_ref scheduler);

/// Searches the graph with the options' pins from the orders that search_from_orders knows. The answer is of `program`,
/// and `original` is made the order of the ids if it is empty.
optimized search_with_pins(op_graph const& program, any_mutator const& moves, cost_model_ref cost, schedule& original,
                           search_options& options, scheduler_ref scheduler);

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/optimize/impl/search.ipp>
#endif
