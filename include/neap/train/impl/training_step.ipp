// The bodies of <neap/train/training_step.hpp>.
#pragma once

#include <neap/train/training_step.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC step_numbers numbers_of(optimizer_ref const& optimizer, training_options const& options,
                                  training_state const& state, std::source_location at) {
  if (options.precision) require_mixed(*options.precision, at);
  found_scale found;
  if (options.precision && options.precision->element == dtype::f16 && options.loss_scale == 0)
    found = {state.loss_scale_source(), state.good_steps_source(), *options.precision};
  if (!optimizer.skips_steps() && !found.scale.is_empty())
    throw_error(context_access::place(at),
                {"training_step: this optimizer cannot leave out a step, which f16 needs where gradients overflow: use "
                 "mixed{dtype::bf16}, training_options{.loss_scale = ...} for a scale that stays, or an optimizer with "
                 "skips_steps (train/optimizer.hpp)"});
  if (!found.scale.is_empty() && found.how.max_skipped > 0 && computation_listener::active())
    throw_error(context_access::place(at),
                {"mixed{.max_skipped = ", found.how.max_skipped,
                 "} is not for compiled functions: read state.skipped_steps() after a call"});
  auto const names = optimizer.numbers();
  return {{names.begin(), names.end()}, optimizer.values(), options.groups,
          options.loss_scale,           state.counter(),    std::move(found)};
}

NEAP_FUNC step_verdict::step_verdict(model_ref model, step_numbers& numbers) : numbers_(numbers) {
  if (!numbers.finds_scale()) return;
  buffers_ = named_tensors_of(model, role::buffer);
  begin();
}

NEAP_FUNC tensor const& step_verdict::see(std::vector<tensor>& gradients) {
  if (numbers_.finds_scale()) total_ = sum_of_squares(gradients);
  return total_;
}

NEAP_FUNC tensor step_verdict::with_verdict(tensor const& numbers) {
  if (total_.is_empty()) return numbers;
  for (auto const& [of, made] : joined_)
    if (of == numbers.storage().get()) return made;
  tensor made = concat({numbers, reshape(total_, {1})}, 0);
  joined_.emplace_back(numbers.storage().get(), made);
  return made;
}

NEAP_FUNC void step_verdict::finish() {
  if (total_.is_empty()) return;
  auto* const trace = tracer::active();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    auto const& b = buffers_[i].tensor;
    tensor const before = trace                                    ? trace->before_updates(b)
                          : b.storage()->version() != versions_[i] ? before_[i]
                                                                   : tensor();
    if (before.is_empty()) continue;
    name_scope const here(buffers_[i].name);
    apply(op::rollback_if_overflow{}, {b, before, total_});
  }
  name_scope const here("loss_scale");
  apply(op::rollback_counter{}, {numbers_.counter(), total_});
  auto const& f = numbers_.found();
  op::update_loss_scale const move{f.how.growth, f.how.backoff, f.how.growth_steps, f.how.min_loss_scale,
                                   f.how.max_loss_scale};
  apply(move, {f.scale, f.good_steps, total_});
}

NEAP_FUNC void step_verdict::begin() {
  no_gradient const off;
  numbers_.set_unscale(apply(op::reciprocal{}, {numbers_.found().scale}));
  if (tracer::active()) return;
  for (auto const& b : buffers_) {
    versions_.push_back(b.tensor.storage()->version());
    before_.push_back(apply(op::copy{}, {b.tensor}));
  }
}

NEAP_FUNC std::vector<named_tensor> unfrozen(std::vector<named_tensor> named) {
  std::erase_if(named, [](named_tensor const& w) { return w.tensor.is_frozen(); });
  return named;
}

/// Refuses a copy of a model whose weights are tied there no longer.
inline void require_ties(std::span<named_tensor const> named, std::source_location at) {
  for (std::size_t i = 0; i < named.size(); ++i)
    for (std::size_t k = 0; named[i].tensor.storage()->lost_tie() != 0 && k < i; ++k)
      if (named[k].tensor.storage()->lost_tie() == named[i].tensor.storage()->lost_tie())
        throw_error(context_access::place(at),
                    {"training_step: the weights \"", named[k].name, "\" and \"", named[i].name,
                     "\" are copies of tied weights, and are not tied in this copy of the model: tie them again by "
                     "share(), or give one of them a copy of its own: w = parameter(w)"});
}

NEAP_FUNC std::vector<named_tensor> trainable(std::span<named_tensor const> named, training_options const& options,
                                              step_numbers& numbers, std::source_location at) {
  for (auto& w : named) (void)numbers.of(w.name);
  require_ties(named, at);
  auto weights = unfrozen({named.begin(), named.end()});
  if (weights.empty() && !named.empty())
    throw_error(
        context_access::place(at),
        {"training_step: all weights of the model are frozen, nothing would train: requires_gradient(part, true) "
         "lets a part train",
         names_of(named)});
  for (auto const& w : weights)
    if (!is_floating(w.tensor.element()))
      throw_error(context_access::place(at), {"training_step: the weight ", w.name, " is ", w.tensor.type(),
                                              ", which cannot be trained: make it a neap::buffer"});
  if (auto const g = numbers.unused_group(); !g.empty())
    throw_error(context_access::place(at),
                {"training_step: no weight of the model is in the group \"", g, "\"", names_of(named)});
  if (options.micro_batches < 1)
    throw_error(context_access::place(at),
                {"training_step: micro_batches must be at least 1, got ", options.micro_batches});
  if (!(options.clip_norm >= 0))
    throw_error(context_access::place(at),
                {"training_step: clip_norm must not be negative, got ", options.clip_norm, "; 0 does not clip"});
  if (!(options.loss_scale >= 0 && options.loss_scale < std::numeric_limits<double>::infinity()))
    throw_error(context_access::place(at), {"training_step: the loss scale must be a finite number above 0, got ",
                                            options.loss_scale, "; 0 does not scale"});
  return weights;
}

NEAP_FUNC void require_matches(std::span<std::string const> patterns, std::span<named_tensor const> named,
                               std::source_location at) {
  for (auto const& p : patterns) {
    bool found = false;
    for (auto const& w : named) found = found || matches(p, w.name);
    if (!found)
      throw_error(context_access::place(at), {"training_step: the optimizer names weights \"", p,
                                              "\", and no weight of the model is among them", names_of(named)});
  }
}

NEAP_FUNC void require_states(std::span<tensor_type const> types, tensor const& weight, std::string const& path,
                              training_state& state) {
  auto const& there = state.of(weight);
  if (there.empty()) return;
  std::string what;
  if (there.size() != types.size())
    what = std::to_string(there.size()) + " states of the weight " + path + ", the optimizer keeps " +
           std::to_string(types.size());
  for (std::size_t k = 0; what.empty() && k < types.size(); ++k)
    if (there[k].type() != types[k])
      what = "a state " + to_string(there[k].type()) + " of the weight " + path + ", where the optimizer keeps " +
             to_string(types[k]);
  if (!what.empty())
    throw_error(context_access::place({}),
                {"training_step: the training has ", what,
                 ": they are another optimizer's; give a new training_state, or load without them by "
                 "load_options{.drop_states = true}"});
}

NEAP_FUNC std::vector<tensor_type> states_kept(optimizer_ref const& optimizer, tensor const& weight,
                                               std::string const& path, training_state& state) {
  auto types = optimizer.state_types(weight, path);
  require_states(types, weight, path, state);
  state.set_used_for(weight);
  return types;
}

NEAP_FUNC std::string or_never_made(std::string const& absent) {
  return absent.empty() ? "" : " Or was a module never made: " + absent + "?";
}

NEAP_FUNC step_results take_step(step_callables const& with, training_state& state, training_options const& options,
                                 step_numbers& numbers, std::source_location at) {
  update_inputs in(state.counter(), numbers.seed());
  random_scope const draws(options.seed, in);
  step_scope const running;
  auto const named = named_tensors_of(with.model, role::weight);
  if (named.empty())
    if (auto const absent = absent_of(with.model); !absent.empty())
      throw_error(context_access::place(at), {"training_step: the model has no weights, of its parts ", absent,
                                              ": make its modules, in its constructor or where they are declared"});
  auto const trained = trainable(named, options, numbers, at);
  std::vector<tensor> weights;
  for (auto const& w : trained) weights.push_back(w.tensor);
  require_matches(with.optimizer.patterns(), named, at);
  step_verdict verdict(with.model, numbers);
  gradient_options how{options.micro_batches, options.keep_prediction, &numbers, {}, !options.other_weights};
  if (options.precision) how.precision = options.precision->element;
  auto made = accumulated_of(with.loss, with.model, weights, how, at);
  tensor const total = [&] {
    name_scope const here("clip");
    return verdict.see(made.gradients);
  }();
  if (options.clip_norm > 0) {
    name_scope const here("clip");
    made.gradients = clip_by_norm(std::move(made.gradients), options.clip_norm, at, total);
  }
  step_results r{std::move(made.loss), std::move(made.outputs), {}, {}};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto const& g = made.gradients[i];
    if (g.is_empty()) continue;
    auto const& name = trained[i].name;
    in.set_weight(name, verdict.with_verdict(numbers.of(name)));
    name_scope const here(name);
    auto const& states = state.of(weights[i], states_kept(with.optimizer, weights[i], name, state));
    with.optimizer.update(weights[i], g, states, in);
    r.weights.push_back(weights[i]);
    r.gradients.push_back(g);
  }
  if (r.weights.empty())
    throw_error(context_access::place(at),
                {"training_step: the loss depends on no weight of the model",
                 trained.size() < named.size() ? " that is not frozen" : "",
                 ": was it detached, or made under no_gradient or evaluation?", or_never_made(absent_of(with.model))});
  (void)in.now();  // steps are counted in any case: schedules go on where a training was left
  verdict.finish();
  return r;
}

NEAP_FUNC std::vector<std::string> names_of_weights(model_ref model, std::vector<tensor> const& weights) {
  auto const named = named_tensors_of(model, role::weight);
  std::vector<std::string> names;
  for (auto const& w : weights)
    for (auto const& n : named)
      if (n.tensor.storage() == w.storage()) names.push_back(n.name);
  return names;
}

NEAP_FUNC std::shared_ptr<void const> owned(void const* object, void (*destroy)(void const* object)) {
  return {object, destroy};
}

NEAP_FUNC void name_sources(tracer& t, step_numbers const& numbers, training_state& state,
                            std::span<named_tensor const> weights, std::span<std::string_view const> states,
                            std::vector<std::vector<tensor_type>> const& types) {
  t.set_name(state.counter(), "step");
  for (auto const& s : numbers.sources()) t.set_name(s.tensor, s.name);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto const& w = weights[i];
    auto const& of_weight = state.of(w.tensor, types[i]);
    for (std::size_t k = 0; k < types[i].size(); ++k) t.set_name(of_weight[k], w.name + "." + std::string(states[k]));
  }
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor eager_result::output(std::string_view name, std::source_location at) const {
  std::string known;
  for (auto const& o : outputs_) {
    if (o.name == name) return o.tensor;
    known += (known.empty() ? "" : ", ") + o.name;
  }
  throw_error(context_access::place(at), {"eager_step: the step has no output \"", name, "\"",
                                          (known.empty() ? std::string() : "; it has " + known)});
}

NEAP_FUNC tensor eager_result::gradient(std::string_view weight, std::source_location at) const {
  for (std::size_t i = 0; i < gradients_.size(); ++i)
    if (trained_[i] == weight) return gradients_[i];
  throw_error(context_access::place(at),
              {"eager_step: the gradient of \"", weight, "\" is not known: ",
               gradients_.empty() ? "take the step with training_options{.keep_gradients = true}"
                                  : "no weight that the loss depends on, and that is not frozen, has this path"});
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC step_verdict::~step_verdict() {
  if (numbers_.finds_scale()) numbers_.set_unscale({});
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC eager_result::eager_result(detail::step_results made, std::vector<std::string> trained)
    : tensor(made.loss.detach()),
      outputs_(std::move(made.outputs)),
      trained_(std::move(trained)),
      gradients_(std::move(made.gradients)) {
  for (auto& o : outputs_) o.tensor = o.tensor.detach();
  for (auto& g : gradients_) g = g.detach();
}

namespace detail {

NEAP_FUNC void require_not_skipping(step_numbers const& numbers, training_state const& state, std::string_view who,
                                    std::source_location at) {
  if (!numbers.finds_scale() || numbers.found().how.max_skipped == 0) return;
  if (auto const n = state.skipped_steps(); n >= numbers.found().how.max_skipped)
    throw_error(
        context_access::place(at),
        {who, ": ", n, " steps in a row had gradients with an infinity or a NaN and were left out; the loss scale is ",
         state.loss_scale(), ": look for a NaN in the batches, or for a rate too large"});
}

NEAP_FUNC eager_result taken_step(step_callables const& with, training_state& state, training_options const& options,
                                  step_settings const& settings, std::source_location at) {
  caller_scope const here(at);
  auto numbers = numbers_of(with.optimizer, options, state, at);
  set_numbers(numbers, settings, state.counter(), at);
  begin_training(unfrozen(named_tensors_of(with.model, role::weight)), state, "eager_step", at);
  step_attempt attempt(state);
  step_results made;
  auto const take = [&](loss_call const& loss) {
    made = take_step({with.model, loss, with.optimizer}, state, options, numbers, at);
  };
  // A batch is data, as it is for a planned step: no gradient goes through it, and what the step writes is read as it was.
  bool is_data = true;
  with.loss.sample().tensors().each_tensor([&](tensor const& x, std::string const&) {
    is_data = is_data && (x.is_empty() || (!x.wants_gradient() && !is_owned(x)));
  });
  if (is_data) take(with.loss);
  else with.loss.with_data(take);
  std::vector<std::string> trained;
  if (options.keep_gradients) trained = names_of_weights(with.model, made.weights);
  else made.gradients.clear();
  eager_result r(std::move(made), std::move(trained));
  attempt.finish();
  require_not_skipping(numbers, state, "eager_step", at);
  return r;
}

NEAP_FUNC void keep_old_values_of(training_program& p) {
  if (auto made = keep_old_values(p.program); made.copies > 0) take_rewritten(p, made);
  require_order(p.program);
}
NEAP_FUNC void recover_activations_of(training_program& p) {
  if (auto made = recover_activations(p.program, p.loss); made.count > 0) take_rewritten(p, made);
}
NEAP_FUNC void fuse_updates_of(training_program& p, training_program const* like) {
  std::span<op_id const> chosen;
  if (like) chosen = like->fused;
  auto made = fuse_updates(p.program, like ? &chosen : nullptr);
  if (made.fused.empty()) return;
  p.fused = std::move(made.fused);
  take_rewritten(p, made);
}

/// The program of a step that has been traced; `like`: made as this one was, for another sample.
NEAP_FUNC training_program finished_step(tracer& t, step_results const& made, training_state const& state,
                                         training_options const& options, training_program const* like) {
  training_program p;
  p.loss = t.keep(made.loss, role::loss);
  for (auto const& o : made.outputs) p.outputs.push_back({o.name, t.keep(o.tensor, role::output)});
  p.residents = t.residents();
  for (auto const& w : made.weights)
    for (auto const& r : p.residents)
      if (r.holder.storage() == w.storage()) p.weights.push_back(r.value);
  if (options.keep_gradients)
    for (auto const& g : made.gradients) p.gradients.push_back(t.keep(g, role::gradient));
  p.inputs = t.inputs();
  p.program = t.finish_unordered();
  keep_old_values_of(p);
  p.program = pinned(std::move(p.program), options.pins);
  p.state = state;
  if (options.recover_activations) recover_activations_of(p);
  if (options.fuse_updates) fuse_updates_of(p, like);
  return p;
}
/// Traces a step.
NEAP_FUNC training_program traced_step(step_callables const& with, training_state& state,
                                       training_options const& options, std::source_location at,
                                       training_program const* like = nullptr) {
  caller_scope const here(at);
  auto numbers = std::make_shared<step_numbers>(numbers_of(with.optimizer, options, state, at));
  tracer t(table_of<standard_operators>(), at);
  name_tensors(t, with.model);
  auto const named = named_tensors_of(with.model, role::weight);
  auto const weights = unfrozen(named);
  std::vector<std::vector<tensor_type>> types;
  for (auto const& w : weights) types.push_back(states_kept(with.optimizer, w.tensor, w.name, state));
  name_sources(t, *numbers, state, weights, with.optimizer.states(), types);
  auto const run = [&](tracer& in) {
    step_results made;
    with.loss.with_inputs(in, [&](loss_call const& loss) {
      made = take_step({with.model, loss, with.optimizer}, state, options, *numbers, at);
    });
    return made;
  };
  auto p = finished_step(t, run(t), state, options, like);
  require_no_memory(t, table_of<standard_operators>(), run, at);
  p.form = sample_form(with.loss.sample());
  p.freezing = freeze_record(named);
  p.numbers = std::move(numbers);
  p.set({}, at);
  return p;
}

/// How a step of a model was made.
class model_recipe final : public step_recipe {
 public:
  /// `loss` and `optimizer` are copies of those in `with`.
  model_recipe(step_callables const& with, std::shared_ptr<void const> loss, std::shared_ptr<void const> optimizer,
               training_state const& state, training_options const& options)
      : with_(with),
        loss_(std::move(loss)),
        optimizer_(std::move(optimizer)),
        state_(state),
        options_(options) {
    with_.optimizer = with.optimizer.of(optimizer_.get());
  }
  model_ref model() const override { return with_.model; }
  training_program for_sample(void const* sample, void const* type, training_program const& like,
                              std::source_location at) const override {
    if (type != with_.loss.sample().type())
      throw_error(context_access::place(at), {"trainer: the batch is of another C++ type than the sample"});
    like.freezing.require_unchanged("trainer", at);
    std::optional<precision_scope> scope;
    precision_.enter(scope);
    auto state = state_;                  // the same states
    mode_scope const trains(true, true);  // also within an evaluation
    step_callables const with{with_.model, with_.loss.with(loss_.get(), sample), with_.optimizer};
    auto p = traced_step(with, state, options_, at, &like);
    p.recipe = std::make_shared<model_recipe>(*this);
    return p;
  }

 private:
  step_callables with_;  // the sample in it is gone
  std::shared_ptr<void const> loss_, optimizer_;
  training_state state_;
  training_options options_;
  same_precision precision_;  // around the step
};

NEAP_FUNC training_program made_step(step_callables const& with, void const* loss, void const* optimizer,
                                     std::shared_ptr<void const> (*copy_loss)(void const*),
                                     std::shared_ptr<void const> (*copy_optimizer)(void const*),
                                     training_options const& options, std::source_location at) {
  training_state fresh;
  training_state& state = options.state ? *options.state : fresh;
  auto p = traced_step(with, state, options, at);
  p.recipe = std::make_shared<model_recipe>(with, copy_loss(loss), copy_optimizer(optimizer), state, options);
  return p;
}

}  // namespace detail

}}  // namespace neap::v0
