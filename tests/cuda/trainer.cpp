// Trainers and evaluators on a simulated device, by the host's kernels: the host's losses and weights to the bit.
#include <neap/cuda.hpp>

#include <neap/execute/evaluator.hpp>
#include <neap/execute/trainer.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/optimize/optimize.hpp>

#include "../support/device/simulated_device.hpp"
#include "../support/message.hpp"
#include "../support/small_network.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

using network = neap::testing::small_network;
constexpr auto& batch = neap::testing::small_batch;
constexpr auto& weights_of = neap::testing::small_weights;

struct told {
  tensor loss, logits;
};

template <class Program>
auto plan_of(Program const& step, double ratio) {
  search_options few;
  few.iterations = 60;
  return optimize(step, chain(rematerialize{}, neap::swap{1e9}), few, memory_limit::of_original(ratio)).placed;
}
std::string problems() { return simulated_device::faults() + simulated_device::races(); }

/// Steps of two equal models, one on the device, one on the host, with the same settings.
template <class Optimizer>
void check_steps(Optimizer const& optimizer, training_options const& options,
                 std::vector<step_settings> const& settings) {
  for (bool const captured : {true, false}) {
    CAPTURE(captured);
    simulated_device::reset(11);
    network there, here;
    initialise(there, 3), initialise(here, 3);
    auto const step = training_step(there, batch(8, 0), cross_entropy{}, optimizer, options);
    auto const same = training_step(here, batch(8, 0), cross_entropy{}, optimizer, options);
    auto const planned = plan_of(step, 0.7);
    host_backend host(1);
    cuda_backend device;
    {
      trainer run(step, planned, device, {.graph = captured});
      trainer beside(same, plan_in_order(same.program), host);
      for (std::size_t i = 0; i < settings.size(); ++i) {
        auto const b = batch(8, i);
        CHECK(run(b, settings[i]) == beside(b, settings[i]));
        if (i % 2) CHECK(weights_of(there) == weights_of(here));
      }
      CHECK(run.program().device_bytes() == planned.arena_bytes);
      CHECK(run.program().is_captured() == captured);
      CHECK(simulated_device::counts().graph_launches == (captured ? settings.size() : 0));
    }
    CHECK(weights_of(there) == weights_of(here));
    CHECK(problems() == "");
  }
}

}  // namespace

TEST_CASE("losses and weights on a device are the host's, in all optimizers, with the numbers of each step") {
  auto const rate = scheduled::cosine(0.05, 0.001, 5).warm_up(2);
  std::vector<step_settings> const some{{}, {.rate = 0.02}, {}, {.rate = 0.01, .weight_decay = 0.1}, {.seed = 9}, {}};
  check_steps(sgd{.rate = rate}, {}, some);
  check_steps(momentum{.rate = rate}, {}, {{}, {.momentum = 0.5}, {.rate = 0.1, .momentum = 0.1}});
  check_steps(adam{.rate = rate}, {.micro_batches = 2}, some);
  check_steps(adamw{.rate = rate, .beta1 = [](std::int64_t s) { return s > 2 ? 0.9 : 0.8; }}, {.clip_norm = 0.5}, some);
  check_steps(muon{.rate = rate, .others = {.rate = rate}, .use_adamw_for = {"out.*"}}, {}, some);
  check_steps(adafactor{.rate = rate}, {.loss_scale = 1024}, {{}, {.loss_scale = 256.0}, {}});
}

TEST_CASE("weights stay on the device until they are read, and what is written to them counts") {
  simulated_device::reset(5);
  network there, here;
  initialise(there, 3), initialise(here, 3);
  auto const step = training_step(there, batch(8, 0), cross_entropy{}, adamw{.rate = 0.1});
  auto const same = training_step(here, batch(8, 0), cross_entropy{}, adamw{.rate = 0.1});
  host_backend host(1);
  cuda_backend device;
  std::optional run(trainer(step, plan_in_order(step.program), device));
  trainer beside(same, plan_in_order(same.program), host);
  auto const both = [&](std::uint64_t seed) { CHECK((*run)(batch(8, seed)) == beside(batch(8, seed))); };
  both(0);
  auto const copies = simulated_device::counts().copies;
  both(1);
  CHECK(simulated_device::counts().copies <= copies + 4);  // the batch and numbers in; the loss and small residents out
  CHECK(there.middle.weight.values<float>() == here.middle.weight.values<float>());  // one is read
  both(2);
  for (auto* n : {&there, &here}) n->middle.weight.data<float>()[3] = 0.5f;  // one is written
  both(3);
  float const* const w = there.in.weight.data<float>();
  both(4);
  run->sync();
  for (std::int64_t i = 0; i < 12 * 24; ++i) REQUIRE(w[i] == here.in.weight.data<float>()[i]);
  both(5);
  network copy = there;  // reads all
  CHECK(weights_of(copy) == weights_of(here));
  both(6);
  initialise(there, 7), initialise(here, 7);
  both(7);
  for (auto* n : {&there, &here}) std::fill_n(n->out.weight.data<float>(), 24 * 5, 0.25f);
  both(8);
  run.reset();
  CHECK(weights_of(there) == weights_of(here));
  CHECK(detail::storages_elsewhere == 0);
  CHECK(problems() == "");
  CHECK(simulated_device::counts().memory == static_cast<std::size_t>(device.scratch_bytes()));  // no other is left
}

TEST_CASE("evaluators beside a trainer: on the device they share the weights, on the host they read the newest") {
  simulated_device::reset(6);
  network there, here;
  initialise(there, 3), initialise(here, 3);
  auto const step = training_step(there, batch(8, 0), cross_entropy{}, adamw{.rate = 0.1});
  auto const same = training_step(here, batch(8, 0), cross_entropy{}, adamw{.rate = 0.1});
  host_backend host(1);
  cuda_backend device;
  std::optional run(trainer(step, plan_in_order(step.program), device));
  trainer beside(same, plan_in_order(same.program), host);
  evaluator on_device(there, batch(8, 0).first, device);
  evaluator on_host(there, batch(8, 0).first, host);
  evaluator expected(here, batch(8, 0).first, host);
  CHECK(on_device.program().device_bytes() < on_device.program().planned().arena_bytes);
  for (std::uint64_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK((*run)(batch(8, i)) == beside(batch(8, i)));
    auto const x = batch(8, 50 + i).first;
    auto const before = simulated_device::counts().copies;
    CHECK(on_device(x).values<float>() == expected(x).values<float>());
    CHECK(simulated_device::counts().copies <= before + 2);
    CHECK(on_host(x).values<float>() == expected(x).values<float>());
  }
  run.reset();
  auto const x = batch(8, 1).first;
  CHECK(on_device(x).values<float>() == expected(x).values<float>());
  for (auto* n : {&there, &here}) std::fill_n(n->out.weight.data<float>(), 24 * 5, 0.5f);
  CHECK(on_device(x).values<float>() == expected(x).values<float>());
  CHECK(problems() == "");
}

TEST_CASE("batches of several sizes share the memory; outputs and gradients are read afterwards") {
  simulated_device::reset(7);
  network there, here;
  initialise(there, 3), initialise(here, 3);
  training_options options;
  options.keep_gradients = true;
  auto const loss = [](network const& n, std::pair<tensor, tensor> const& b) {
    tensor const logits = n(b.first);
    return told{cross_entropy{}(logits, b.second), logits};
  };
  auto const step = training_step(there, batch(16, 0), loss, adamw{.rate = 0.1}, options);
  auto const same = training_step(here, batch(16, 0), loss, adamw{.rate = 0.1}, options);
  host_backend host(1);
  cuda_backend device;
  trainer run(step, plan_of(step, 0.8), device);
  trainer beside(same, plan_in_order(same.program), host);
  auto const memory = simulated_device::counts().memory;
  for (std::int64_t n : {16, 5, 16, 1, 5, 9, 16}) {
    CAPTURE(n);
    auto const b = batch(n, static_cast<std::uint64_t>(n));
    CHECK(run(b) == beside(b));
    CHECK(run.output("logits").values<float>() == beside.output("logits").values<float>());
    CHECK(run.gradient("in.weight").values<float>() == beside.gradient("in.weight").values<float>());
    CHECK(run.gradient("out.bias").values<float>() == beside.gradient("out.bias").values<float>());
  }
  CHECK(run.size_count() == 4);
  CHECK(simulated_device::counts().memory == memory);
  CHECK(weights_of(there) == weights_of(here));
  CHECK(problems() == "");
}

TEST_CASE("larger batches than the sample run in the room that sizes.limit gives on the device") {
  simulated_device::reset(7);
  network there, here;
  initialise(there, 3), initialise(here, 3);
  auto const step = training_step(there, batch(4, 0), cross_entropy{}, adamw{.rate = 0.1});
  auto const same = training_step(here, batch(64, 0), cross_entropy{}, adamw{.rate = 0.1});
  auto const large = plan_in_order(same.program);
  host_backend host(1);
  cuda_backend device;
  trainer run(step, plan_in_order(step.program), device, {.sizes = {.limit = large.arena_bytes + 1024}});
  trainer beside(same, large, host);
  auto const memory = [&] { return simulated_device::counts().memory - device.scratch_bytes(); };
  auto const before = memory();
  for (std::int64_t n : {4, 64, 32, 4, 64}) {
    CAPTURE(n);
    auto const b = batch(n, static_cast<std::uint64_t>(n));
    CHECK(run(b) == beside(b));
  }
  CHECK(memory() == before);  // scratch of kernels apart
  CHECK(message_of([&] { run.prepare(batch(640, 1)); }).find(".limit") != std::string::npos);
  CHECK(weights_of(there) == weights_of(here));
  CHECK(problems() == "");
}

TEST_CASE("a captured step is captured again where the scratch memory of kernels has moved") {
  simulated_device::reset(9);
  network there, here;
  initialise(there, 3), initialise(here, 3);
  auto const step = training_step(there, batch(8, 0), cross_entropy{}, adamw{.rate = 0.1});
  auto const same = training_step(here, batch(8, 0), cross_entropy{}, adamw{.rate = 0.1});
  host_backend host(1);
  cuda_backend device;
  trainer run(step, plan_in_order(step.program), device);
  trainer beside(same, plan_in_order(same.program), host);
  CHECK(run(batch(8, 0)) == beside(batch(8, 0)));
  auto const before = device.scratch_bytes();
  CHECK(before > 0);
  evaluator larger(there, batch(64, 0).first, device);
  evaluator expected(here, batch(64, 0).first, host);
  CHECK(device.scratch_bytes() > before);
  for (std::uint64_t i = 1; i < 4; ++i) {
    CHECK(run(batch(8, i)) == beside(batch(8, i)));
    CHECK(larger(batch(64, i).first).values<float>() == expected(batch(64, i).first).values<float>());
  }
  CHECK(problems() == "");
}

TEST_CASE("a step that fails is not counted, and the model has the weights of the last finished one") {
  for (bool const captured : {true, false}) {
    CAPTURE(captured);
    simulated_device::reset(8);
    network there, here;
    initialise(there, 3), initialise(here, 3);
    auto const step = training_step(there, batch(8, 0), cross_entropy{}, adamw{.rate = 0.1});
    auto const same = training_step(here, batch(8, 0), cross_entropy{}, adamw{.rate = 0.1});
    host_backend host(1);
    cuda_backend device;
    trainer run(step, plan_in_order(step.program), device, {.graph = captured});
    trainer beside(same, plan_in_order(same.program), host);
    for (std::uint64_t i = 0; i < 2; ++i) CHECK(run(batch(8, i)) == beside(batch(8, i)));
    simulated_device::fail(captured ? "cudaGraphLaunch" : "cudaMemcpyAsync", 1, cudaErrorInvalidValue);
    auto const line = message_of([&] { run(batch(8, 2)); });
    CAPTURE(line);
    CHECK(line.find("invalid argument") != std::string::npos);
    CHECK(weights_of(there) == weights_of(here));
    for (std::uint64_t i = 2; i < 4; ++i) CHECK(run(batch(8, i)) == beside(batch(8, i)));
    CHECK(problems() == "");
    // A fault of the device: the model has what the last sync() copied back.
    run.sync();
    auto const last = weights_of(there);
    run(batch(8, 4));
    simulated_device::fail_execution(device_work::library, 3, cudaErrorIllegalAddress);
    CHECK(message_of([&] { run(batch(8, 5)); }).find("what was there is lost") != std::string::npos);
    CHECK(weights_of(there) == last);
  }
  simulated_device::reset();
}
