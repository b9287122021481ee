// Tracing a function of tensors into a program: a graph, where its memory is, what goes in and what comes out.
//
//   auto p = neap::trace([&](neap::tensor x) { return model(x); }, sample);   // the sample's type counts, not its data
#pragma once

#include <neap/ir/standard_operators.hpp>
#include <neap/model/parameters.hpp>
#include <neap/model/sample_form.hpp>
#include <neap/model/trace.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace neap { inline namespace v0 {

struct traced_program {
  op_graph program;
  std::vector<resident> residents;  // weights, states, buffers and constants that the program reads
  std::vector<value_id> inputs;     // in the order of the samples' tensors
  std::vector<value_id> outputs;    // likewise of what the function gave
};

namespace detail {

/// Whether a sample has its tensors itself: pairs and tuples of references would have them in the caller's variables.
template <class Sample>
constexpr bool holds_parts = true;
template <class... Part>
constexpr bool holds_parts<std::tuple<Part...>> = (... && (!std::is_reference_v<Part> && holds_parts<Part>));
template <class A, class B>
constexpr bool holds_parts<std::pair<A, B>> = holds_parts<std::tuple<A, B>>;

/// Whether a tensor looks at memory that a model or a training owns, and may write.
bool is_owned(tensor const& x);
/// Puts inputs of the trace in place of a sample's tensors; without a trace, their data alone.
void make_inputs(tracer* t, model_ref sample);
/// A copy of a sample with such tensors.
template <class Sample>
Sample as_inputs(tracer* t, Sample const& sample) {
  static_assert(holds_parts<Sample>,
                "neap: a sample holds its tensors, not references to them: std::pair{x, y} or std::tuple{x, y, z}, not "
                "std::tie");
  Sample copy = sample;
  make_inputs(t, model_ref(copy));
  return copy;
}
/// Tells a trace the paths of a model's tensors and modules.
void name_tensors(tracer& t, model_ref model);

/// Throws neap::error, with the line in question, if a program reads what its last run has stored somewhere: eagerly it is
/// carried from run to run, a plan would read the same each time. `run(tracer)` runs it again, in a trace that is thrown
/// away; needed only where a tensor of `t`, which has ended, is still held.
template <class F>
void require_no_memory(tracer const& t, operator_table ops, F const& run, std::source_location at) {
  if (!t.is_held()) return;
  tracer again(ops, at);
  (void)run(again);
}

template <class F, class... Sample>
traced_program traced(std::source_location at, F& f, Sample const&... samples) {
  caller_scope const here(at);
  tracer t(table_of<standard_operators>(), at);
  auto args = std::tuple<Sample...>{as_inputs(&t, samples)...};
  auto result = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return f(std::get<I>(args)...);
  }(std::index_sequence_for<Sample...>{});
  traced_program p;
  for_each_tensor(result, [&](tensor& x, std::string const&) { p.outputs.push_back(t.keep(x, role::output)); });
  p.inputs = t.inputs();
  p.residents = t.residents();
  p.program = t.finish();
  return p;
}
}  // namespace detail

/// The program of f(samples...): shapes only, no data and no memory. Samples and the result are tensors, or pairs,
/// tuples, vectors or plain structs of tensors. Throws neap::error for mistakes in the model, with the user's place.
template <class F, class Sample>
traced_program trace(F&& f, Sample const& sample, std::source_location at = std::source_location::current()) {
  return detail::traced(at, f, sample);
}
/// The same of none or several samples. (What follows a pack has no default: where f is a module of the library itself,
/// trace a lambda that calls it, and mistakes in the samples have a place.)
template <class F, class... Sample>
  requires(sizeof...(Sample) != 1)
traced_program trace(F&& f, Sample const&... samples) {
  return detail::traced({}, f, samples...);
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/program.ipp>
#endif
