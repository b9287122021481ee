// trainer: a planned training step bound to a model's own memory. Each call runs one step on a batch; weights, optimizer
// states and running statistics are updated where the model has them, so that the model can be used at any time between.
//
//   auto step  = training_step(model, sample, cross_entropy{}, adamw{});
//   auto found = optimize(step, moves, memory_limit{2_GiB});
//   trainer run(step, found.placed, backend);
//   for (auto const& batch : data) loss = run(batch);
#pragma once

#include <neap/execute/executable.hpp>
#include <neap/train/training_step.hpp>

#include <string>
#include <utility>
#include <vector>

namespace neap::inline v0 {

template <class Ops, class Backend>
class trainer {
 public:
  /// `p` is a plan of the step's program. Throws neap::error as executable does. Memory of weights and states comes into
  /// being here, if it has not before.
  trainer(training_program<Ops> const& step, plan<basic_graph<Ops>> p, Backend& backend,
          execution_options const& options = {})
      : residents_(step.residents),
        inputs_(planned_inputs(step, p)),
        types_(input_types(step)),
        loss_(planned_kept(step, p, step.loss)),
        run_(p, bindings(step, p), backend, options) {}

  /// Runs one step on a batch of the sample's form and types; the loss before the update. Takes no memory. Throws
  /// neap::error if the batch differs from the sample in number or types, or the spill file fails.
  template <class Sample>
  double operator()(Sample const& batch) {
    std::size_t k = 0;
    Sample handles = batch;
    for_each_tensor(handles, [&](tensor const& x, auto const&) { bind(k++, x); });
    if (k != inputs_.size())
      throw error("trainer: the batch has " + std::to_string(k) + " tensors, the sample had " +
                  std::to_string(inputs_.size()));
    run_();
    auto const l = run_.value(loss_);
    return l.element == dtype::f64 ? *l.template as<double>() : static_cast<double>(*l.template as<float>());
  }

  executable<Ops, Backend> const& program() const { return run_; }

 private:
  void bind(std::size_t k, tensor const& x) {
    if (k >= inputs_.size()) return;
    if (!(x.type() == types_[k]))
      throw error("trainer: tensor " + std::to_string(k) + " of the batch is " + to_string(x.type()) +
                  ", the sample's was " + to_string(types_[k]));
    if (!x.layout().is_dense()) throw error("trainer: tensor " + std::to_string(k) + " of the batch is not dense");
    run_.bind(inputs_[k], x.ref().data);
  }
  /// Sources stand in the same order in a program and in its plans, and so do kept values; ids may differ.
  static value_id counterpart(std::span<value_id const> from, std::span<value_id const> to, value_id v) {
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] == v) return to[i];
    throw error("trainer: the plan is not one of the step's program");
  }
  static std::vector<value_id> planned_inputs(training_program<Ops> const& step, plan<basic_graph<Ops>> const& p) {
    if (p.original != step.program.digest()) throw error("trainer: the plan is not one of the step's program");
    std::vector<value_id> ids;
    for (auto v : step.inputs) ids.push_back(counterpart(step.program.sources(), p.graph.sources(), v));
    return ids;
  }
  static std::vector<tensor_type> input_types(training_program<Ops> const& step) {
    std::vector<tensor_type> types;
    for (auto v : step.inputs) types.push_back(step.program.type(v));
    return types;
  }
  static value_id planned_kept(training_program<Ops> const& step, plan<basic_graph<Ops>> const& p, value_id v) {
    return counterpart(step.program.kept(), p.graph.kept(), v);
  }
  static std::vector<source_binding> bindings(training_program<Ops> const& step, plan<basic_graph<Ops>> const& p) {
    std::vector<source_binding> b;
    for (auto const& r : step.residents)
      b.push_back({counterpart(step.program.sources(), p.graph.sources(), r.value), r.memory()});
    return b;
  }

  std::vector<resident> residents_;  // keeps their memory
  std::vector<value_id> inputs_;
  std::vector<tensor_type> types_;
  value_id loss_;
  executable<Ops, Backend> run_;
};

template <class Ops, class Backend>
trainer(training_program<Ops> const&, plan<basic_graph<Ops>>, Backend&) -> trainer<Ops, Backend>;
template <class Ops, class Backend>
trainer(training_program<Ops> const&, plan<basic_graph<Ops>>, Backend&, execution_options) -> trainer<Ops, Backend>;

}  // namespace neap::inline v0
