// A residual network trained on a simulated device with cuDNN's convolutions: the host's losses but for rounding; the same
// bits with a graph and without, and recomputed; the scratch memory is reserved before the first step.
#include <neap/cuda.hpp>
#include <neap/neap.hpp>

#include <neap/cuda/cudnn.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/resnet.hpp>

#include "../support/device/simulated_device.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using namespace neap::testing;

TEST_CASE("a residual network with cuDNN's convolutions") {
  zoo::resnet model(zoo::resnet_config::toy());
  initialise(model, 6);
  auto const batch = [](std::uint64_t seed) {
    return std::pair{tensor::randn({2, 3, 6, 6}, seed), tensor::from(std::vector<std::int64_t>{1, 3}, {2})};
  };
  for (bool const low : {false, true}) {
    CAPTURE(low);
    training_options options;
    if (low) options.precision = mixed{dtype::bf16};
    auto const losses = [&](auto& backend, bool captured, bool recomputed) {
      auto copy = model;
      auto const step = training_step(copy, batch(0), cross_entropy{}, adamw{.rate = 0.01}, options);
      search_options few;
      few.iterations = 60;
      auto const plan =
          recomputed ? optimize(step, rematerialize{}, few, roofline::h100(), memory_limit::of_original(0.7)).placed
                     : plan_in_order(step.program);
      trainer run(step, plan, backend, {.graph = captured});
      std::vector<double> all;
      for (std::uint64_t i = 0; i < 2; ++i) all.push_back(run(batch(i)));
      return all;
    };
    host_backend host(1);
    auto const expected = losses(host, true, false);
    std::vector<double> first;
    std::uint64_t seed = 50;
    std::size_t own_kernels = 0;
    for (auto const [captured, recomputed, by_library] :
         {std::array{false, false, false}, {false, false, true}, {true, false, true}, {false, true, true}}) {
      simulated_device::reset(++seed);
      cuda_backend device;
      auto const library = std::make_shared<cudnn>(device.device());
      if (by_library) device.use_convolutions(library);
      auto const got = losses(device, captured, recomputed);
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(got[i] == doctest::Approx(expected[i]).epsilon(low ? 2e-2 : 1e-4));
      CHECK(simulated_device::faults() == "");
      CHECK(simulated_device::races() == "");
      if (!by_library) {
        own_kernels = simulated_device::counts().kernels;
        CHECK(simulated_device::calls("cudnnBackendExecute") == 0);
        continue;
      }
      CHECK(library->plans() > 0);
      CHECK(simulated_device::calls("cudnnBackendExecute") > 0);
      CHECK(device.scratch_bytes() >= (low ? 4096 : 256));
      if (!captured && !recomputed) {
        MESSAGE(std::string(low ? "bf16: " : "f32: ") << simulated_device::counts().kernels << " kernels and "
                                                      << simulated_device::calls("cudnnBackendExecute") << " calls, "
                                                      << own_kernels << " kernels of our own");
        CHECK(simulated_device::counts().kernels < own_kernels);
      }
      if (first.empty()) first = got;
      CHECK(got == first);
    }
  }
}

TEST_CASE("a transformer in bf16 with cuDNN's attention") {
  zoo::gpt model(zoo::gpt_config::toy());
  initialise(model, 5);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 2 * 8; ++i) ids.push_back((i * 5 + 3) % 16);
  std::pair const batch{tensor::from(ids, {2, 8}), tensor::from(ids, {2, 8})};
  training_options options;
  options.precision = mixed{dtype::bf16};
  auto const losses = [&](auto& backend, bool captured) {
    auto copy = model;
    auto const step = training_step(copy, batch, cross_entropy{}, adamw{.rate = 0.01}, options);
    trainer run(step, plan_in_order(step.program), backend, {.graph = captured});
    std::vector<double> all;
    for (int i = 0; i < 2; ++i) all.push_back(run(batch));
    return all;
  };
  host_backend host(1);
  auto const expected = losses(host, true);
  std::vector<double> first;
  for (bool const captured : {false, true}) {
    simulated_device::reset(captured ? 61 : 60);
    cuda_backend device;
    auto const library = std::make_shared<cudnn>(device.device());
    device.use_attention(library);
    auto const got = losses(device, captured);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-2));
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
    CHECK(library->plans() == 2);  // all blocks have the same shapes: one plan forward, one backward
    CHECK(simulated_device::calls("cudnnBackendExecute") > 0);
    if (first.empty()) first = got;
    CHECK(got == first);
  }
}
