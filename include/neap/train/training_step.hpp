// A training step as a value: training_step traces model and loss with types only, differentiates, appends the updates of
// weights and states in place, and gives the graph of all of it, with the tensors that hold its memory. eager_step does
// the same work at once, by the same operators in the same order, so that losses, gradients and weights agree bit by bit.
// In both, a weight that does not reach the loss is left alone: no gradient, no update, no decay.
//
//   auto step = neap::training_step(model, std::pair{x, y}, neap::cross_entropy{}, neap::adamw{.rate = 3e-4});
#pragma once

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/pin_rules.hpp>
#include <neap/train/accumulate.hpp>
#include <neap/train/activation_recovery.hpp>
#include <neap/train/captured_numbers.hpp>
#include <neap/train/clip.hpp>
#include <neap/train/freeze.hpp>
#include <neap/train/fuse_updates.hpp>
#include <neap/train/mixed.hpp>
#include <neap/train/old_values.hpp>
#include <neap/train/optimizer.hpp>
#include <neap/train/step_numbers.hpp>

#include <concepts>
#include <limits>
#include <memory>
#include <optional>

namespace neap { inline namespace v0 {

/// None, or mixed{...}; an element type alone stands for mixed{type}.
struct step_precision : std::optional<mixed> {
  using std::optional<mixed>::optional;
  step_precision(std::optional<mixed> const& p) : std::optional<mixed>(p) {}
  step_precision(dtype t) : std::optional<mixed>(mixed{t}) {}
};

struct training_options {
  double clip_norm = 0;                   // of all gradients together; 0: none
  std::int64_t micro_batches = 1;         // parts of the sample along axis 0, one after another (accumulate.hpp)
  bool keep_gradients = false;            // to the end of the step: for trainer::gradient
  bool keep_prediction = false;           // what the model gave is the output "prediction" (losses of (model, last))
  bool fuse_updates = true;               // large weights' gradients are made and used up in parts (fuse_updates.hpp)
  bool other_weights = false;             // the loss may depend on weights of other models, which stay as they are
  bool recover_activations = true;        // in the backward pass, in place of keeping them (activation_recovery.hpp)
  std::uint64_t seed = 0;                 // of dropout's draws
  step_precision precision{};             // the model computes in bf16 or f16 (mixed.hpp); none: as its weights are
  double loss_scale = 0;                  // the loss is differentiated times this, gradients are divided by it; 0: not
  pin_rules pins{};                       // of the step's ops and values, beside those in the model (ir/pin_rules.hpp)
  std::vector<parameter_group> groups{};  // weights with a rate or decay of their own; the first that matches counts
  training_state* state = nullptr;        // goes on with these states; none: new ones
};

struct training_program;

namespace detail {
/// How a step was made: model, loss, optimizer and options, to make it again for samples of other sizes.
class step_recipe {
 public:
  virtual ~step_recipe() = default;
  virtual model_ref model() const = 0;
  /// The step for another sample; `type` is the address that stands for the sample's type (sample_type). The model and
  /// the states are the same.
  virtual training_program for_sample(void const* sample, void const* type, training_program const& like,
                                      std::source_location at) const = 0;
};
}  // namespace detail

/// An output of a training step.
struct named_value {
  std::string name;
  value_id value;
};

struct training_program {
  op_graph program;
  std::vector<resident> residents;  // all sources but the inputs: who holds their memory, and their names
  std::vector<value_id> inputs;     // in the order of the sample's tensors
  detail::sample_form form;         // what the sample was besides its tensors' types
  value_id loss{};
  std::vector<named_value> outputs;  // of the loss function, beside the loss
  std::vector<value_id> weights;     // the trained ones, as they are before the step
  std::vector<op_id> fused;          // updates that were made one with their gradient's product, by their ids before
  std::vector<value_id> gradients;   // of these weights, if they are kept; after clipping
  training_state state;              // what the step goes on with: save and load it with the model
  detail::freeze_record freezing;    // which weights were frozen when it was made
  std::shared_ptr<detail::step_numbers const> numbers;  // the optimizer's, written anew for each step
  std::shared_ptr<detail::step_recipe const> recipe;    // none where the program was not made from a model

  /// Writes the numbers of the next step (rates...). A trainer does it; who runs the program otherwise calls it before
  /// each step if they change from step to step.
  void set(step_settings const& s = {}, std::source_location at = std::source_location::current()) const {
    if (numbers) numbers->set(s, at);
  }
};

namespace detail {

struct step_results {
  tensor loss;
  std::vector<named_tensor> outputs;
  std::vector<tensor> weights, gradients;
};

/// The numbers of a step with these options.
step_numbers numbers_of(optimizer_ref const& optimizer, training_options const& options, training_state const& state,
                        std::source_location at);

/// Throws neap::error if as many steps in a row as mixed::max_skipped says were left out.
void require_not_skipping(step_numbers const& numbers, training_state const& state, std::string_view who,
                          std::source_location at);

/// What a step that does not count takes back, beside weights and states: what the model itself has written, and the count.
class step_verdict {
 public:
  /// `numbers`: of the step that begins.
  step_verdict(model_ref model, step_numbers& numbers);
  step_verdict(step_verdict const&) = delete;
  step_verdict& operator=(step_verdict const&) = delete;
  ~step_verdict();

  /// The sum of the gradients' squares; empty where all steps count.
  tensor const& see(std::vector<tensor>& gradients);
  /// A weight's numbers as its update reads them: with the sum, if there is one.
  tensor with_verdict(tensor const& numbers);
  /// When all is updated.
  void finish();

 private:
  void begin();

  step_numbers& numbers_;
  tensor total_;
  std::vector<named_tensor> buffers_;
  std::vector<std::uint32_t> versions_;  // of the buffers, where the step is taken at once
  std::vector<tensor> before_;
  std::vector<std::pair<void const*, tensor>> joined_;
};

/// The weights that are not frozen.
std::vector<named_tensor> unfrozen(std::vector<named_tensor> named);

/// The model's weights that are trained. The patterns of groups may match frozen weights alone. Throws neap::error for what
/// cannot be trained as the options say, and if all weights are frozen.
std::vector<named_tensor> trainable(std::span<named_tensor const> named, training_options const& options,
                                    step_numbers& numbers, std::source_location at);

/// Throws neap::error if a pattern of an optimizer's matches the path of no weight.
void require_matches(std::span<std::string const> patterns, std::span<named_tensor const> named,
                     std::source_location at);

/// Throws neap::error if the training has other states of the weight than an optimizer that keeps states of these types.
void require_states(std::span<tensor_type const> types, tensor const& weight, std::string const& path,
                    training_state& state);

/// The types of the states that the optimizer keeps of a weight. Throws neap::error if the training has others of it.
std::vector<tensor_type> states_kept(optimizer_ref const& optimizer, tensor const& weight, std::string const& path,
                                     training_state& state);

/// What may be wrong besides, where parts of a model hold nothing.
std::string or_never_made(std::string const& absent);

/// What a step is made of, erased. `loss` is called with `model`.
struct step_callables {
  model_ref model;
  loss_call loss;
  optimizer_ref optimizer;
};

/// One step, in whichever mode this thread is.
step_results take_step(step_callables const& with, training_state& state, training_options const& options,
                       step_numbers& numbers, std::source_location at);

/// The paths of weights in a model.
std::vector<std::string> names_of_weights(model_ref model, std::vector<tensor> const& weights);

/// The program as a pass wrote it anew.
template <class Pass>
void take_rewritten(training_program& p, Pass& made) {
  p.program = std::move(made.program);
  p.loss = made.value[p.loss];
  for (auto& r : p.residents) r.value = made.value[r.value];
  for (auto& o : p.outputs) o.value = made.value[o.value];
  for (auto* list : {&p.inputs, &p.weights, &p.gradients})
    for (auto& v : *list) v = made.value[v];
}
/// Tells a trace the names of what a step has beside the model's tensors; `states`: names of the optimizer's, and the types
/// of those that each weight has.
void name_sources(tracer& t, step_numbers const& numbers, training_state& state, std::span<named_tensor const> weights,
                  std::span<std::string_view const> states, std::vector<std::vector<tensor_type>> const& types);

/// An object of some type, owned. `destroy` deletes it.
std::shared_ptr<void const> owned(void const* object, void (*destroy)(void const* object));
template <class T>
std::shared_ptr<void const> copy_of(void const* object) {
  return owned(new T(*static_cast<T const*>(object)), [](void const* p) { delete static_cast<T const*>(p); });
}

/// Makes a step and its recipe; `copy_loss` and `copy_optimizer` copy those in `with`.
training_program made_step(step_callables const& with, void const* loss, void const* optimizer,
                           std::shared_ptr<void const> (*copy_loss)(void const*),
                           std::shared_ptr<void const> (*copy_optimizer)(void const*), training_options const& options,
                           std::source_location at);

}  // namespace detail

/// The program of one training step. The sample is a tensor or a pair, tuple or plain struct of tensors: its types count,
/// not its data, and nothing large is allocated. Weights that reach the loss are updated in the model's own memory when
/// the program runs; the others, and frozen ones (requires_gradient), are left alone. The model outlives the program and its trainers, and stays where it is.
/// Numbers and flags of model, loss and sample are in the program as they are now: what changes from step to step is a
/// tensor of the sample, a buffer of the model, or one of the step's numbers (train/step_numbers.hpp).
/// Throws neap::error with the user's place for mistakes in the model.
template <class Model, class Sample, class Loss, class Optimizer>
training_program training_step(Model& model, Sample const& sample, Loss const& loss, Optimizer const& optimizer,
                               training_options const& options = {},
                               std::source_location at = std::source_location::current()) {
  static_assert(detail::check_optimizer<Optimizer>());
  using function = std::decay_t<Loss>;  // a function is kept by its address
  function const& kept = loss;
  return detail::made_step({detail::model_ref(model), {kept, model, sample}, detail::optimizer_ref(optimizer)}, &kept,
                           &optimizer, detail::copy_of<function>, detail::copy_of<Optimizer>, options, at);
}

/// The compile-time error for a step without an optimizer.
template <class Model, class Sample, class Loss>
training_program training_step(Model&, Sample const&, Loss const&) {
  static_assert(detail::never<Loss>,
                "neap: a training step needs an optimizer behind the loss: "
                "training_step(model, batch, loss, neap::adamw{.rate = 3e-4})");
  return {};
}

/// What an eager step gives: the loss before the update, as a tensor, and what trainer has of its last step.
class eager_result : public tensor {
 public:
  eager_result() = default;
  explicit eager_result(detail::step_results made, std::vector<std::string> trained);

  /// What the loss gave beside the number, by its name. Throws neap::error if there is no such output.
  tensor output(std::string_view name, std::source_location at = std::source_location::current()) const;
  std::vector<named_tensor> const& outputs() const { return outputs_; }
  /// The gradient of a weight, by its path, as it was used: after clipping. Throws neap::error if gradients are not kept
  /// (training_options::keep_gradients), or none of the trained weights has this path.
  tensor gradient(std::string_view weight, std::source_location at = std::source_location::current()) const;

 private:
  std::vector<named_tensor> outputs_;
  std::vector<std::string> trained_;  // the paths of the weights that `gradients_` are of
  std::vector<tensor> gradients_;
};

namespace detail {
/// eager_step().
eager_result taken_step(step_callables const& with, training_state& state, training_options const& options,
                        step_settings const& settings, std::source_location at);
}  // namespace detail

/// Takes one training step at once, of the weights that reach the loss; the loss before the update, and the loss's other
/// outputs: eager_step(...).output("logits"). `state` goes on from step to step; `settings` stand for the optimizer's numbers
/// in this step. The batch is data, as a trainer's is: no gradient goes through it to what it was made of. A step that throws
/// is not counted.
template <class Model, class Sample, class Loss, class Optimizer>
eager_result eager_step(Model& model, Sample const& sample, Loss const& loss, Optimizer const& optimizer,
                        training_state& state, training_options const& options = {}, step_settings const& settings = {},
                        std::source_location at = std::source_location::current()) {
  static_assert(detail::check_optimizer<Optimizer>());
  std::decay_t<Loss> const& function = loss;  // a function by its address
  return detail::taken_step({detail::model_ref(model), {function, model, sample}, detail::optimizer_ref(optimizer)},
                            state, options, settings, at);
}
/// The compile-time errors for a step without an optimizer, and for one without a state.
template <class Model, class Sample, class Loss, class Last>
  requires(!std::same_as<Last, training_options>)
eager_result eager_step(Model&, Sample const&, Loss const&, Last&) {
  static_assert(!std::same_as<std::remove_const_t<Last>, training_state>,
                "neap: an eager step needs an optimizer behind the loss: "
                "eager_step(model, batch, loss, neap::adamw{.rate = 3e-4}, state)");
  static_assert(
      std::same_as<std::remove_const_t<Last>, training_state>,
      "neap: an eager step needs a neap::training_state behind the optimizer, which lives as long as the training");
  return {};
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/training_step.ipp>
#endif
