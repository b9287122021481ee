// The search behind optimize, as what is above it calls it: with pipeline, cost model and scheduler erased. It stands in
// search.hpp. A program that is compiled apart (core/separate_compilation.hpp) has it once, for graphs over the standard
// operators and for images of external graphs, and reads nothing of it.
#pragma once

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/external_graph.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/mutate/any_mutator.hpp>
#include <neap/optimize/search_callables.hpp>
#include <neap/optimize/search_options.hpp>

#include <concepts>
#include <span>

namespace neap { inline namespace v0 { namespace detail {

/// search.hpp completes it.
struct search_is_defined;

/// Whether a search over G can be called: its definition is here, or compiled elsewhere.
template <class G, class Defined = search_is_defined>
constexpr bool has_search() {
  return std::same_as<G, graph> || std::same_as<G, external_graph> || requires { sizeof(Defined); };
}

/// Searches from orders: `original`, which ratios refer to, and `seeds`. See optimize_from.
template <class G>
optimized<G> search_from(G const& program, any_mutator<G> const& moves, cost_model_ref<G> cost,
                         schedule const& original, std::span<schedule const> seeds, search_options const& options,
                         scheduler_ref<G> scheduler);

/// Searches the graph with the options' pins from the orders that search_from_orders knows. The answer is of `program`,
/// and `original` is made the order of the ids if it is empty.
template <class G>
optimized<G> search_with_pins(G const& program, any_mutator<G> const& moves, cost_model_ref<G> cost, schedule& original,
                              search_options& options, scheduler_ref<G> scheduler);

}}}  // namespace neap::v0::detail
