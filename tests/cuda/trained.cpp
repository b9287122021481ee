// Models trained on a simulated device by the GPU's own kernels, as nvcc compiled them: the host's losses and weights but
// for rounding; the same bits with a graph and without, recomputed, swapped, and in any order that the device takes.
#include <neap/cuda.hpp>
#include <neap/neap.hpp>

#include <neap/cuda/cublaslt.hpp>
#include <neap/model/zoo/gpt.hpp>

#include "../support/device/simulated_device.hpp"
#include "../support/message.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

constexpr int steps = 3;

struct outcome {
  std::vector<double> losses;
  std::vector<std::vector<float>> weights;
  bool operator==(outcome const&) const = default;
};

/// Trains a copy of the model; `plan_of` plans its step.
template <class Model, class Batch, class Backend, class Plan>
outcome trained(Model const& model, Batch const& batch, Backend& backend, bool captured, Plan const& plan_of) {
  Model copy = model;
  auto const step = training_step(copy, batch(0), cross_entropy{}, adamw{.rate = 0.01});
  outcome o;
  {
    trainer run(step, plan_of(step), backend, {.graph = captured});
    for (int i = 0; i < steps; ++i) o.losses.push_back(run(batch(i)));
  }
  for (auto const& w : named_tensors(copy, role::weight)) o.weights.push_back(w.tensor.template values<float>());
  return o;
}
auto const in_order = [](auto const& step) { return plan_in_order(step.program); };
template <class Moves>
auto within(double ratio, Moves const& moves) {
  return [=](auto const& step) {
    search_options few;
    few.iterations = 60;
    return optimize(step, moves, few, roofline::h100(), memory_limit::of_original(ratio)).placed;
  };
}

template <class Model, class Batch>
void check_training(Model const& model, Batch const& batch) {
  host_backend host(1);
  auto const expected = trained(model, batch, host, true, in_order);
  outcome first;
  std::uint64_t seed = 0;
  auto const on_device = [&](bool captured, auto const& plan_of) {
    simulated_device::reset(++seed);
    cuda_backend device;
    auto const o = trained(model, batch, device, captured, plan_of);
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
    if (first.losses.empty()) first = o;
    CHECK(o == first);
  };
  on_device(true, in_order);
  on_device(false, in_order);
  on_device(true, within(0.7, rematerialize{}));
  on_device(true, within(0.7, neap::swap{1e9}));
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    CHECK(first.losses[i] == doctest::Approx(expected.losses[i]).epsilon(1e-4));
  for (std::size_t k = 0; k < expected.weights.size(); ++k)
    for (std::size_t i = 0; i < expected.weights[k].size(); ++i)
      REQUIRE(std::abs(first.weights[k][i] - expected.weights[k][i]) < 2e-3f);  // Adam steps by signs at first
}

std::pair<tensor, tensor> rows(int seed, std::int64_t width) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 6; ++i) labels.push_back((i * 7 + seed) % 5);
  return {tensor::randn({6, width}, static_cast<std::uint64_t>(seed)), tensor::from(labels, {6})};
}

struct perceptron {
  nn::linear in{20, 36}, out{36, 5};
  tensor operator()(tensor const& x) const { return out(relu(in(x))); }
};
struct regression {
  nn::linear in{20, 300}, middle{300, 36}, out{36, 5};
  tensor operator()(tensor const& x) const { return out(silu(middle(relu(in(x))))); }
};
struct normed {
  nn::linear in{20, 36}, out{36, 5};
  nn::layer_norm norm{36};
  nn::dropout drop{0.25};
  tensor operator()(tensor const& x) const { return out(drop(gelu(norm(in(x))))); }
};

}  // namespace

TEST_CASE("a perceptron trains on a device as on the host") {
  perceptron m;
  initialise(m, 3);
  check_training(m, [](int seed) { return rows(seed, 20); });
}

TEST_CASE("with norms, dropout and gelu") {
  normed m;
  initialise(m, 4);
  check_training(m, [](int seed) { return rows(seed, 20); });
}

TEST_CASE("a small transformer") {
  auto c = zoo::gpt_config::toy();
  c.fused_attention = false;
  zoo::gpt m(c);
  initialise(m, 5);
  check_training(m, [](int seed) {
    random_stream draw(static_cast<std::uint64_t>(seed), 3);
    std::vector<std::int64_t> ids, next;
    for (int i = 0; i < 2 * 8; ++i) ids.push_back(draw.below(16)), next.push_back(draw.below(16));
    return std::pair{tensor::from(ids, {2, 8}), tensor::from(next, {2, 8})};
  });
}

TEST_CASE("a launch that is refused is one line that names the op; the weights are those of the last finished step") {
  for (bool const captured : {true, false}) {
    CAPTURE(captured);
    simulated_device::reset(9);
    normed m;
    initialise(m, 4);
    auto const step = training_step(m, rows(0, 20), cross_entropy{}, adamw{.rate = 0.01});
    cuda_backend device;
    trainer run(step, plan_in_order(step.program), device, {.graph = captured});
    if (!captured) run(rows(0, 20));
    auto const before = m.out.weight.values<float>();
    simulated_device::fail("launch", 4, cudaErrorInvalidConfiguration);
    auto const line = message_of([&] { run(rows(1, 20)); });
    CAPTURE(line);
    CHECK(line.find(" #") != std::string::npos);
    CHECK(line.find(": cuda: launch of a kernel: invalid configuration argument; weights are those before the step") !=
          std::string::npos);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(m.out.weight.values<float>() == before);
    run(rows(1, 20));
    CHECK(m.out.weight.values<float>() != before);
    CHECK(simulated_device::faults() + simulated_device::races() == "");
  }
}

TEST_CASE("muon trains on a device as on the host, skipped steps included") {
  perceptron there, here;
  initialise(there, 3), initialise(here, 3);
  muon const optimizer{.rate = 0.02, .others = {.rate = 0.01}};
  training_options options;
  options.precision = mixed{dtype::f16, 65536.0 * 65536};  // the first steps overflow
  simulated_device::reset(4);
  cuda_backend device;
  auto const step = training_step(there, rows(0, 20), cross_entropy{}, optimizer, options);
  int unchanged = 0, changed = 0;
  {
    trainer run(step, plan_in_order(step.program), device);
    auto before = there.in.weight.values<float>();
    for (int i = 0; i < 20; ++i) {
      CHECK(std::isfinite(run(rows(i, 20))));
      auto const now = there.in.weight.values<float>();
      (now == before ? unchanged : changed) += 1;
      before = now;
    }
  }
  CHECK(unchanged > 0);
  CHECK(changed > 0);
  auto const plain = training_step(here, rows(0, 20), cross_entropy{}, optimizer);
  perceptron beside;
  initialise(beside, 3);
  auto const same = training_step(beside, rows(0, 20), cross_entropy{}, optimizer);
  host_backend host(1);
  trainer on_device(plain, plan_in_order(plain.program), device);
  trainer on_host(same, plan_in_order(same.program), host);
  for (int i = 0; i < steps; ++i) CHECK(on_device(rows(i, 20)) == doctest::Approx(on_host(rows(i, 20))).epsilon(1e-4));
  CHECK(simulated_device::faults() == "");
  CHECK(simulated_device::races() == "");
}

TEST_CASE("neighbouring updates of a transformer are one launch, with the bits of a launch each") {
  auto c = zoo::gpt_config::toy();
  c.fused_attention = false;
  zoo::gpt const model = [&] {
    zoo::gpt m(c);
    initialise(m, 5);
    return m;
  }();
  random_stream draw(9, 3);
  std::vector<std::int64_t> ids, next;
  for (int i = 0; i < 2 * 8; ++i) ids.push_back(draw.below(16)), next.push_back(draw.below(16));
  std::pair const batch{tensor::from(ids, {2, 8}), tensor::from(next, {2, 8})};
  auto const check = [&](std::string const& name, auto const& optimizer, training_options const& options) {
    CAPTURE(name);
    std::vector<std::vector<float>> weights[2];
    std::size_t launches[2];
    std::size_t updated = 0;
    for (bool const apart : {false, true}) {
      simulated_device::reset(apart ? 11 : 12);
      cuda_backend device;
      zoo::gpt copy = model;
      auto const step = training_step(copy, batch, cross_entropy{}, optimizer, options);
      updated = step.weights.size();
      memory_options const plainly{.alignment = 64, .takeover = false};
      auto const& g = step.program;
      schedule const order = given_order{}(g);  // the updates at the end
      auto const p = make_plan({g, order, simulate(g, order, roofline::h100(), plainly)}, g, plainly);
      {
        std::vector<seconds_t> seconds;  // of steps that are timed, each op is launched by itself
        trainer run(step, p, device, {.step_seconds = apart ? &seconds : nullptr, .graph = false});
        run(batch);
        auto const before = simulated_device::counts().kernels;
        run(batch);
        launches[apart] = simulated_device::counts().kernels - before;
      }
      for (auto const& w : named_tensors(copy, role::weight))
        weights[apart].push_back(w.tensor.template values<float>());
      CHECK(simulated_device::faults() == "");
      CHECK(simulated_device::races() == "");
    }
    CHECK(weights[0] == weights[1]);
    MESSAGE(name << ": " << launches[1] << " launches a step, " << launches[0] << " with updates together, of "
                 << updated << " weights");
    CHECK(launches[0] + updated <= launches[1] + 4);
  };
  check("sgd", sgd{.rate = 0.01}, {});
  check("momentum", momentum{.rate = 0.01}, {});
  check("adam", adam{.rate = 0.01}, {});
  check("adamw", adamw{.rate = 0.01, .weight_decay = 0.1}, {});
  check("adamw, clipped", adamw{.rate = 0.01}, {.clip_norm = 0.5});
}

TEST_CASE("a reduction and the chain before it are one launch of a step, with the bits of a launch each") {
  regression model;
  initialise(model, 6);
  std::pair const batch{tensor::randn({6, 20}, 1), tensor::randn({6, 5}, 2)};
  std::vector<std::vector<float>> weights[2];
  std::size_t launches[2];
  std::size_t reductions = 0;
  for (bool const fuses : {false, true}) {
    simulated_device::reset(fuses ? 5 : 6);
    cuda_backend device;
    regression copy = model;
    auto step = training_step(copy, batch, mse{}, sgd{.rate = 0.1});
    step = fuse(std::move(step), {.products = false, .rows = fuses});
    for (auto o : step.program.ops())
      if (auto const* p = step.program.as<op::fused>(o)) reductions += p->is_reduction();
    {
      trainer run(step, plan_in_order(step.program), device, {.graph = false});
      run(batch);
      auto const before = simulated_device::counts().kernels;
      run(batch);
      launches[fuses] = simulated_device::counts().kernels - before;
    }
    for (auto const& w : named_tensors(copy, role::weight)) weights[fuses].push_back(w.tensor.template values<float>());
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
  }
  CHECK(weights[0] == weights[1]);
  CHECK(reductions > 0);  // the squared error
  CHECK(launches[1] + reductions == launches[0]);
}

TEST_CASE("products with their biases, activations and bias gradients are one call of the library each") {
  auto c = zoo::gpt_config::toy();
  c.layers = 1;
  zoo::gpt model(c);
  initialise(model, 5);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 2 * 8; ++i) ids.push_back((i * 5 + 3) % 16);
  std::pair const batch{tensor::from(ids, {2, 8}), tensor::from(ids, {2, 8})};
  auto const losses = [&](auto const& step, auto const& plan, auto& backend, bool captured) {
    std::vector<double> all;
    trainer run(step, plan, backend, {.graph = captured});
    for (int i = 0; i < 2; ++i) all.push_back(run(batch));
    return all;
  };
  for (bool const low : {false, true}) {
    CAPTURE(low);
    training_options options;
    if (low) options.precision = mixed{dtype::bf16};
    auto const made = [&](zoo::gpt& m, bool fuses) {
      auto step = training_step(m, batch, cross_entropy{}, adamw{.rate = 0.01}, options);
      return fuses ? fuse(std::move(step), {.rows = false, .chains = false}) : step;
    };
    host_backend host(1);
    auto on_host = model;
    auto const host_step = made(on_host, true);
    auto const expected = losses(host_step, plan_in_order(host_step.program), host, true);
    std::size_t kernels[2]{}, calls[2]{};
    std::vector<double> first;
    std::uint64_t seed = 30;
    auto const check = [&](bool fuses, bool captured, auto const& plan_of) {
      simulated_device::reset(++seed);
      cuda_backend device;
      auto const library = std::make_shared<cublaslt>(device.device());
      device.use_products(library);
      auto copy = model;
      auto const step = made(copy, fuses);
      auto const plan = plan_of(step);
      auto const got = losses(step, plan, device, captured);
      if (calls[fuses] == 0) {  // the first one: not captured, in order
        kernels[fuses] = simulated_device::counts().kernels;
        calls[fuses] = static_cast<std::size_t>(simulated_device::calls("cublasLtMatmul"));
      }
      CHECK(simulated_device::faults() == "");
      CHECK(simulated_device::races() == "");
      for (std::size_t i = 0; i < got.size(); ++i)
        CHECK(got[i] == doctest::Approx(expected[i]).epsilon(low ? 1e-2 : 1e-4));
      if (!fuses) return;
      if (first.empty()) first = got;
      CHECK(got == first);
    };
    check(false, false, in_order);
    check(true, false, in_order);
    check(true, true, in_order);
    check(true, false, within(0.7, rematerialize{}));
    MESSAGE(std::string(low ? "bf16: " : "f32: ")
            << kernels[0] << " kernels and " << calls[0] << " calls in two steps, " << kernels[1] << " and " << calls[1]
            << " with epilogues");
    CHECK(calls[1] == calls[0]);
    CHECK(kernels[1] + 2 * 9 <= kernels[0]);  // of each step: four biases, one gelu, four bias gradients
  }
}
