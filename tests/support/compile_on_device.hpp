// neap::compile of tests/capture as one for a simulated device: a file of that folder that is included after this header runs
// its programs there.
#pragma once

#include <neap/capture/cond.hpp>
#include <neap/capture/sym_functions.hpp>
#include <neap/capture/tracked_generator.hpp>
#include <neap/core/philox.hpp>
#include <neap/cuda/compile.hpp>
#include <neap/execute/capture.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/default_moves.hpp>
#include <neap/train/training_step.hpp>

#include <utility>

namespace neap { inline namespace v0 {

/// Of the whole program: functions that it compiles have ended before.
inline cuda_backend& device_of_tests() {
  static cuda_backend backend;
  return backend;
}
template <class F>
auto compile_on_device(F f, compile_options const& options = {}) {
  return compile(std::move(f), device_of_tests(), options);
}
template <class F, detail::graph_planner Plan>
auto compile_on_device(F f, Plan how, compile_options const& options = {}) {
  return compile(std::move(f), std::move(how), device_of_tests(), options);
}

}}  // namespace neap::v0

#define NEAP_COMPILES_FOR_DEVICE
#define compile compile_on_device
