// The operators of one call of a function in eager style, captured by shapes: nothing is computed, no tensor takes memory,
// and arguments are left as they are. So a model that does not fit without a plan is planned before its first step.
//
//   auto const graphs = neap::capture<neap::shapes_only>(step, model, x, y);
//   auto const found = neap::optimize(graphs.front(), neap::default_moves, neap::memory_limit{2_GiB});
//
// They are the graphs that a compiled function captures by running. compiled_function::prepare plans and keeps them.
#pragma once

#include <neap/execute/compile.hpp>

#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// How neap::capture runs a function: by shapes and types of tensors alone.
struct shapes_only {};

/// The graphs of f(arguments...), in the order in which they run: one, or several where the host reads a value or calls a
/// function between them. Throws neap::error where the path depends on what a tensor contains, with the place, and for what
/// a compiled function refuses.
template <class Mode, class F, class... A>
  requires std::is_same_v<Mode, shapes_only>
std::vector<graph> capture(F f, A&&... arguments) {
  return compile(std::move(f), compile_options{}, std::source_location{}).graphs_for(std::forward<A>(arguments)...);
}

}}  // namespace neap::v0
