// A trainer in a file: its model, and what its own training_state keeps (train/training_file.hpp).
//
//   neap::save(run, "run.safetensors").value();
//   neap::load(run, "run.safetensors").value();   // a trainer of an equal model and optimizer, in another process
#pragma once

#include <neap/execute/trainer.hpp>
#include <neap/train/training_file.hpp>

#include <source_location>
#include <string>

namespace neap { inline namespace v0 {

namespace detail {
template <class Backend>
model_ref model_of(trainer<Backend> const& run) {
  if (!run.step().recipe) throw_error({"a trainer of a program that no model was traced for has no names to save"});
  return run.step().recipe->model();
}
}  // namespace detail

/// save(model, state, path) of a trainer's model and state. Throws neap::error while a call of it is under way.
template <class Backend>
[[nodiscard]] status save(trainer<Backend>& run, std::string const& path, safetensors_metadata const& metadata = {},
                          std::source_location at = std::source_location::current()) {
  auto const alone = run.begin_call(at);
  return detail::save_training(detail::model_of(run), run.state(), path, metadata);
}

/// load(model, state, path) of a trainer's model and state: the trainer goes on with what is in the file.
/// Throws neap::error while a call of it is under way.
template <class Backend>
[[nodiscard]] result<load_report> load(trainer<Backend>& run, std::string const& path, load_options const& options = {},
                                       std::source_location at = std::source_location::current()) {
  auto const alone = run.begin_call(at);
  return detail::load_training(detail::model_of(run), run.state(), path, options);
}

}}  // namespace neap::v0
