// A training step as a value: training_step traces model and loss with types only, differentiates, appends the updates of
// weights and states in place, and gives the graph of all of it, with the tensors that hold its memory. eager_step does
// the same work at once, by the same operators in the same order, so that losses, gradients and weights agree bit by bit.
// In both, a weight that does not reach the loss is left alone: no gradient, no update, no decay.
//
//   auto step = neap::training_step(model, std::pair{x, y}, neap::cross_entropy{}, neap::adamw{.rate = 3e-4});
#pragma once

#include <neap/train/accumulate.hpp>
#include <neap/train/clip.hpp>
#include <neap/train/fuse_updates.hpp>
#include <neap/train/optimizer.hpp>

namespace neap::inline v0 {

struct training_options {
  double clip_norm = 0;             // of all gradients together; 0: none
  std::int64_t micro_batches = 1;   // parts of the sample along axis 0, one after another
  bool keep_gradients = false;      // to the end of the step
  bool fuse_updates = true;         // large weights' gradients are made and used up in parts (train/fuse_updates.hpp)
  std::uint64_t seed = 0;           // of dropout's draws
  training_state* state = nullptr;  // goes on with these states; none: new ones
};

template <class Ops = standard_operators>
struct training_program {
  basic_graph<Ops> program;
  std::vector<resident> residents;  // all sources but the inputs: who holds their memory, and their names
  std::vector<value_id> inputs;     // in the order of the sample's tensors
  value_id loss{};
  std::vector<value_id> weights;    // the trained ones, as they are before the step
  std::vector<value_id> gradients;  // of these weights, if they are kept; after clipping
};

namespace detail {

struct step_results {
  tensor loss;
  std::vector<tensor> weights, gradients;
};

/// One step, in whichever mode this thread is.
template <class Model, class Sample, class Loss, class Optimizer>
step_results take_step(Model& model, Sample const& sample, Loss const& loss, Optimizer const& optimizer,
                       training_state& state, training_options const& options, std::source_location at) {
  step_clock clock(state.counter());
  random_scope const draws(options.seed, clock);
  std::vector<tensor> weights;
  for (auto& w : named_tensors(model, role::weight)) {
    if (!is_floating(w.tensor.element()))
      throw error(context_access::place(at), "training_step: the weight " + w.name + " is " +
                                                 to_string(w.tensor.type()) +
                                                 ", which cannot be trained: make it a neap::buffer");
    weights.push_back(std::move(w.tensor));
  }
  if (options.micro_batches < 1)
    throw error(context_access::place(at), "training_step: micro_batches must be at least 1");
  auto made = accumulated(loss, model, sample, weights, options.micro_batches, at);
  if (options.clip_norm > 0) made.gradients = clip_by_norm(std::move(made.gradients), options.clip_norm, at);
  step_results r{std::move(made.loss), {}, {}};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (made.gradients[i].is_empty()) continue;
    r.weights.push_back(weights[i]);
    r.gradients.push_back(std::move(made.gradients[i]));
  }
  if (r.weights.empty())
    throw error(context_access::place(at), "training_step: the loss depends on no weight of the model");
  for (std::size_t i = 0; i < r.weights.size(); ++i)
    optimizer.update(r.weights[i], r.gradients[i], state.of(r.weights[i], Optimizer::states.size()), clock);
  return r;
}

template <class Ops>
void fuse_updates_of(training_program<Ops>& p) {
  auto fused = fuse_updates(p.program);
  if (fused.count == 0) return;
  p.program = std::move(fused.program);
  p.loss = fused.value[p.loss];
  for (auto& r : p.residents) r.value = fused.value[r.value];
  for (auto* list : {&p.inputs, &p.weights, &p.gradients})
    for (auto& v : *list) v = fused.value[v];
}

}  // namespace detail

/// The program of one training step. The sample is a tensor or a pair, tuple or plain struct of tensors: its types count,
/// not its data, and nothing is allocated. Weights that reach the loss are updated in the model's own memory when the
/// program runs; the others are left alone.
/// Throws neap::error with the user's place for mistakes in the model.
template <class Ops = standard_operators, class Model, class Sample, class Loss, optimizer Optimizer>
training_program<Ops> training_step(Model& model, Sample const& sample, Loss const& loss, Optimizer const& optimizer,
                                    training_options options = {},
                                    std::source_location at = std::source_location::current()) {
  caller_scope const here(at);
  training_state fresh;
  training_state& state = options.state ? *options.state : fresh;
  tracer t(operator_table(Ops::facets), at);
  detail::name_tensors(t, model);
  t.set_name(state.counter(), "step");
  for (auto const& w : named_tensors(model, role::weight)) {
    auto const& states = state.of(w.tensor, Optimizer::states.size());
    for (std::size_t k = 0; k < Optimizer::states.size(); ++k)
      t.set_name(states[k], w.name + "." + std::string(Optimizer::states[k]));
  }
  auto const inputs = detail::as_inputs(t, sample);
  auto made = detail::take_step(model, inputs, loss, optimizer, state, options, at);

  training_program<Ops> p;
  p.loss = t.keep(made.loss, role::loss);
  p.residents = t.residents();
  for (auto const& w : made.weights)
    for (auto const& r : p.residents)
      if (r.holder.storage() == w.storage()) p.weights.push_back(r.value);
  if (options.keep_gradients)
    for (auto const& g : made.gradients) p.gradients.push_back(t.keep(g, role::gradient));
  p.inputs = t.inputs();
  p.program = basic_graph<Ops>(t.finish());
  if (options.fuse_updates) detail::fuse_updates_of(p);
  return p;
}

/// Takes one training step at once, of the weights that reach the loss; the loss before the update. `state` goes on from
/// step to step.
template <class Model, class Sample, class Loss, optimizer Optimizer>
tensor eager_step(Model& model, Sample const& sample, Loss const& loss, Optimizer const& optimizer,
                  training_state& state, training_options const& options = {},
                  std::source_location at = std::source_location::current()) {
  caller_scope const here(at);
  return detail::take_step(model, sample, loss, optimizer, state, options, at).loss.detach();
}

}  // namespace neap::inline v0
