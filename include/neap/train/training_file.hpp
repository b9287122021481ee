// A training in a file: the model, each weight's optimizer states, the counter of steps and this thread's random numbers.
// A run that stops after a step and goes on from the file gives the bits of one that never stopped, eager or planned.
//
//   neap::training_state state;
//   neap::eager_step(model, batch, loss, optimizer, state);   // or a training_step of {.state = &state}, planned
//   neap::save(model, state, "run.safetensors").value();
//   neap::load(model, state, "run.safetensors").value();   // in another process, before or after the step was made
//
// The file has the model's tensors and states as neap::save(model, path) writes them, and beside them
//
//   training_state/step        the number of steps taken
//   training_state/loss_scale, training_state/good_steps   of a training in f16 (train/mixed.hpp)
//   training_state/random      seed and draws of this thread's eager_context: dropout outside of steps, new weights
//   training_state/0/PATH      the first state of the weight PATH, as the optimizer counts them; /1/PATH the second
//
// Rates, the seed of the steps' dropout and other options are the program's own: give the same ones again.
#pragma once

#include <neap/model/weights_file.hpp>
#include <neap/train/optimizer.hpp>

#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

inline std::string state_name(std::size_t k, std::string const& weight) {
  return std::string(training_prefix) + std::to_string(k) + "/" + weight;
}

/// What a state in a file becomes where no step says it: floating ones are those of the weight's states. What neap has no
/// type for is taken as one of the weight's shape, which it does not fit.
inline tensor_type state_type(safetensors_entry const& e, tensor const& weight) {
  auto type = state_like(weight);
  if (!e.element.type || e.dims.size() > static_cast<std::size_t>(max_rank)) return type;
  if (!is_floating(*e.element.type)) type.element = *e.element.type;
  type.dims = {};
  for (auto extent : e.dims) type.dims.push_back(extent);
  return type;
}

/// Seed and draws of this thread, as they stand in a file.
inline tensor random_position() {
  auto& context = eager_context::current();
  auto const now = context_access::enter(context, {});
  context_access::enter(context, now);
  return make_copy(std::vector<std::int64_t>{static_cast<std::int64_t>(now.seed), static_cast<std::int64_t>(now.draws)},
                   {2}, {});
}
inline void set_random_position(tensor const& t) {
  auto& context = eager_context::current();
  auto r = context_access::enter(context, {});
  auto const* p = static_cast<std::int64_t const*>(t.ref().data);
  r.seed = static_cast<std::uint64_t>(p[0]), r.draws = static_cast<std::uint64_t>(p[1]);
  context_access::enter(context, r);
}

/// How many steps another training than `state` has taken with these weights, which it trained last; 0: none has.
inline std::int64_t steps_of_another(std::vector<named_tensor> const& weights, training_state const& state) {
  for (auto const& w : weights) {
    auto const& counter = w.tensor.storage()->training();
    if (counter && counter != state.counter().storage()) return *reinterpret_cast<std::int64_t*>(counter->data());
  }
  return 0;
}

/// save(model, state, path).
inline status save_training(model_ref model, training_state const& state, std::string const& path,
                            safetensors_metadata const& metadata) {
  std::string const prefix(training_prefix);
  training_state handles = state;
  auto const weights = named_tensors_of(model, role::weight);
  bool is_used = state.counter().item<std::int64_t>() != 0;
  for (auto const& w : weights) is_used = is_used || !handles.of(w.tensor).empty();
  if (auto const n = is_used ? 0 : steps_of_another(weights, state); n > 0)
    return failure{path +
                   ": cannot be written: the training_state given has taken no step, and another one has taken " +
                   std::to_string(n) + " with this model: save(run, path) saves a trainer and its own; or make the " +
                   "step with training_options{.state = &state}"};
  std::vector<named_tensor> all;
  for (auto& t : load_targets(model)) all.push_back({std::move(t.names.front()), std::move(t.holder)});
  all.push_back({prefix + "step", state.counter()});
  all.push_back({prefix + "random", random_position()});
  if (state.loss_scale() != 0) {
    all.push_back({prefix + "loss_scale", state.loss_scale_source()});
    all.push_back({prefix + "good_steps", state.good_steps_source()});
  }
  for (auto const& w : weights) {
    std::size_t k = 0;
    for (auto const& s : handles.of(w.tensor)) all.push_back({state_name(k++, w.name), s});
  }
  return write_safetensors(path, std::move(all), metadata);
}

/// load(model, state, path).
inline result<load_report> load_training(model_ref model, training_state& state, std::string const& path,
                                         load_options const& options) {
  auto const file = safetensors_file::open(path);
  if (!file) return failure{file.message()};
  std::string const prefix(training_prefix);
  auto const known = file_names::of(*file, options);
  if (!known) return failure{known.message()};
  if (!known->find(prefix + "step") && !options.allow_missing)
    return file->refuse("has no training, weights alone: load(model, path) loads them");
  auto targets = load_targets(model);
  auto const random = random_position();
  targets.push_back({{prefix + "step"}, state.counter()});
  targets.push_back({{prefix + "random"}, random});
  bool const has_scale = known->find(prefix + "loss_scale") != nullptr;
  if (has_scale) {
    targets.push_back({{prefix + "loss_scale"}, state.loss_scale_source()});
    targets.push_back({{prefix + "good_steps"}, state.good_steps_source()});
  }

  // What states the file has of each weight; they are compared with ones that stand for them, so that a file that does not
  // fit leaves no trace in `state`. Where no step was made yet, states have the shapes of the file: the step that comes
  // compares them with its optimizer's.
  struct weight_states {
    tensor weight;
    std::vector<tensor_type> types;
    std::size_t first_row = 0;  // of the targets
  };
  std::vector<weight_states> rows;
  training_state like;
  std::set<std::string> dropped;  // names in the file
  auto const weights = named_tensors_of(model, role::weight);
  for (auto const& w : weights) {
    std::vector<std::string> names;
    for (auto const& t : targets)
      if (t.holder.storage() == w.tensor.storage()) names = t.names;
    auto const in_file = [&](std::size_t k) {
      safetensors_entry const* e = nullptr;
      for (auto const& name : names)
        if (!e) e = known->find(state_name(k, name));
      return e;
    };
    weight_states r{w.tensor, {}, targets.size()};
    while (auto const* e = in_file(r.types.size())) {
      r.types.push_back(state_type(*e, w.tensor));
      if (options.drop_states) dropped.insert(e->name);
    }
    if (options.drop_states) r.types.clear();
    auto const kept = state.of(w.tensor);
    bool const is_known = !kept.empty() || state.is_used_for(w.tensor);  // what the optimizer keeps
    if (!r.types.empty() && is_known && r.types.size() != kept.size())
      return file->refuse("does not fit the training: it has " + std::to_string(r.types.size()) + " states of " +
                          in_quotes(w.name) + ", the optimizer " + std::to_string(kept.size()) +
                          ": load_options{.drop_states = true} leaves them out");
    for (std::size_t k = 0; k < r.types.size(); ++k) {
      if (!kept.empty()) r.types[k] = kept[k].type();
      load_target t{{}, like.of(w.tensor, std::span(r.types).first(k + 1))[k]};
      for (auto const& name : names) t.names.push_back(state_name(k, name));
      targets.push_back(std::move(t));
    }
    rows.push_back(std::move(r));
  }
  load_plan p;
  if (auto s = plan_load(*file, *known, targets, options, {}, p, dropped); !s) return failure{s.message()};
  for (auto const& r : rows) {
    auto const& states = state.of(r.weight, r.types);
    for (std::size_t k = 0; k < r.types.size(); ++k) targets[r.first_row + k].holder = states[k];
  }
  if (auto s = run_load(*file, targets, p); !s) return failure{s.message()};
  if (!has_scale)
    for (auto const* t : {&state.loss_scale_source(), &state.good_steps_source()})
      std::memset(t->storage()->data(), 0, sizeof(double));
  if (file->header().find(prefix + "step"))
    for (auto const& r : rows) {
      auto const& states = state.of(r.weight);
      for (std::size_t k = r.types.size(); k < states.size(); ++k)
        states[k].storage()->restart(initialiser::constant(0));
    }
  set_random_position(random);
  auto const& counter = state.counter().storage();
  counter->set_training(nullptr, true);
  for (auto const& w : weights) w.tensor.storage()->set_training(counter, true);
  return std::move(p.report);
}

}  // namespace detail

/// Writes a model and what its training keeps, and texts of your own. `state` is what the steps go on with: what was given
/// to eager_step, or a training_program's member of that name. One that has taken no step is refused where another one has
/// trained the model; save(run, path) of execute/trainer_file.hpp saves a trainer with its own.
template <class Model>
[[nodiscard]] status save(Model& model, training_state const& state, std::string const& path,
                          safetensors_metadata const& metadata = {}) {
  return detail::save_training(detail::model_ref(model), state, path, metadata);
}

/// Reads a model and its training's state into their own memory, so that trainers bound to them go on with them, and sets
/// this thread's random numbers. States that the file has not (it was saved before they were used) become zeros again.
/// States of another optimizer are refused, here or when a step is made; load_options::drop_states leaves them out. As in
/// load(model, path), nothing has changed if something is missing, extra or of another type. A step that goes on with
/// another training_state is refused.
template <class Model>
[[nodiscard]] result<load_report> load(Model& model, training_state& state, std::string const& path,
                                       load_options const& options = {}) {
  return detail::load_training(detail::model_ref(model), state, path, options);
}

}}  // namespace neap::v0
