// Tracing a function of tensors into a program: a graph, where its memory is, what goes in and what comes out.
//
//   auto p = neap::trace([&](neap::tensor x) { return model(x); }, sample);   // the sample's type counts, not its data
#pragma once

#include <neap/ir/standard_operators.hpp>
#include <neap/model/parameters.hpp>
#include <neap/model/trace.hpp>

namespace neap::inline v0 {

template <class Ops = standard_operators>
struct traced_program {
  basic_graph<Ops> program;
  std::vector<resident> residents;  // weights, states, buffers and constants that the program reads
  std::vector<value_id> inputs;     // in the order of the samples' tensors
  std::vector<value_id> outputs;    // likewise of what the function gave
};

namespace detail {

/// A copy of a sample (a tensor, or a pair, tuple, vector, struct... of them) whose tensors went through f.
template <class Sample, class F>
Sample with_tensors(Sample const& sample, F f) {
  Sample copy = sample;
  for_each_tensor(copy, [&](tensor& t, std::string const& path) {
    if (!t.is_empty()) t = f(t, path);
  });
  return copy;
}
template <class Sample>
Sample as_inputs(tracer& t, Sample const& sample) {
  return with_tensors(sample, [&](tensor const& x, std::string const& path) {
    return t.input(x, path.empty() ? "input" : "input." + path);
  });
}
template <class Model>
void name_tensors(tracer& t, Model& model) {
  for_each_tensor(model, [&](tensor& x, std::string const& path) {
    if (!x.is_empty() && !x.is_traced()) t.set_name(x, path);
  });
}

}  // namespace detail

/// The program of f(samples...): shapes only, no data and no memory. Samples and the result are tensors, or pairs,
/// tuples, vectors or plain structs of tensors.
template <class Ops = standard_operators, class F, class... Sample>
traced_program<Ops> trace(F&& f, Sample const&... samples) {
  tracer t{operator_table(Ops::facets)};
  auto args = std::tuple<Sample...>{detail::as_inputs(t, samples)...};
  auto result = std::apply(f, args);
  traced_program<Ops> p;
  for_each_tensor(result, [&](tensor& x, std::string const&) { p.outputs.push_back(t.keep(x, role::output)); });
  p.inputs = t.inputs();
  p.residents = t.residents();
  p.program = basic_graph<Ops>(t.finish());
  return p;
}

}  // namespace neap::inline v0
