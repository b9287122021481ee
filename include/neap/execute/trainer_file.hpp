// A trainer in a file: its model, and what its own training_state keeps (train/training_file.hpp).
//
//   neap::save(run, "run.safetensors").value();
//   neap::load(run, "run.safetensors").value();   // a trainer of an equal model and optimizer, in another process
#pragma once

#include <neap/execute/trainer.hpp>
#include <neap/train/training_file.hpp>

#include <string>

namespace neap::inline v0 {

namespace detail {
template <class Ops, class Backend>
model_ref model_of(trainer<Ops, Backend> const& run) {
  if (!run.step().recipe) throw_error({"a trainer of a program that no model was traced for has no names to save"});
  return run.step().recipe->model();
}
}  // namespace detail

/// save(model, state, path) of a trainer's model and state.
template <class Ops, class Backend>
[[nodiscard]] status save(trainer<Ops, Backend>& run, std::string const& path,
                          safetensors_metadata const& metadata = {}) {
  return detail::save_training(detail::model_of(run), run.state(), path, metadata);
}

/// load(model, state, path) of a trainer's model and state: the trainer goes on with what is in the file.
template <class Ops, class Backend>
[[nodiscard]] result<load_report> load(trainer<Ops, Backend>& run, std::string const& path,
                                       load_options const& options = {}) {
  return detail::load_training(detail::model_of(run), run.state(), path, options);
}

}  // namespace neap::inline v0
