// Measured costs on a simulated device: times between events, the link, presets.
#include <neap/cuda/measure.hpp>

#include <neap/execute/measured.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>

#include <neap/cuda.hpp>

#include "../support/device/simulated_device.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <string>
#include <utility>

using namespace neap;
using namespace neap::testing;

namespace {

struct network {
  nn::linear in{16, 32}, out{32, 4};
  tensor operator()(tensor const& x) const { return out(relu(in(x))); }
};
std::pair<tensor, tensor> batch() {
  return {tensor::randn({8, 16}, 1), tensor::from<std::int64_t>({0, 1, 2, 3, 0, 1, 2, 3}, {8})};
}

}  // namespace

TEST_CASE("ops are measured on the device, alone and where they stand, and what is known is kept for the device") {
  simulated_device::reset(1);
  cuda_backend device;
  std::string file;
  {
    measured cost(device, ".");
    file = cost.file();
    std::remove(file.c_str());
  }
  {
    measured cost(device, ".");
    network m, copy = m;
    auto const step = training_step(m, batch(), cross_entropy{}, adamw{});
    for (auto o : step.program.ops())
      if (!flow::is_view(step.program, o)) CHECK(cost(step.program, o) > 0);
    auto const alone = cost.measured_alone();
    CHECK(alone > 5);
    CHECK(cost.whole(training_step(copy, batch(), cross_entropy{}, adamw{}), batch(), true));
    for (auto o : step.program.ops())
      if (!flow::is_view(step.program, o)) CHECK(cost(step.program, o) > 0);
    CHECK(cost.measured_alone() == alone);
    CHECK(cost.save().ok());
    auto const found = optimize(step, neap::swap{}, cost, memory_limit::of_original(0.9));
    trainer run(step, found.placed, device);
    run(batch());
  }
  measured again(device, ".");
  network m;
  auto const step = training_step(m, batch(), cross_entropy{}, adamw{});
  for (auto o : step.program.ops()) (void)again(step.program, o);
  CHECK(again.measured_alone() == 0);
  std::remove(file.c_str());
  CHECK(simulated_device::faults() + simulated_device::races() == "");
}

TEST_CASE("the link is measured both ways, alone and at once") {
  simulated_device::reset(2);
  cuda_backend device;
  auto const memory = simulated_device::counts().memory;
  auto const link = measure_link(device, 1 << 16, 3);
  for (double rate : {link.to_host, link.to_device, link.to_host_both, link.to_device_both}) CHECK(rate > 0);
  auto figures = figures_of(device);
  link.apply(figures);
  CHECK(figures.to_host_bytes_per_second == link.to_host_both);
  CHECK(simulated_device::counts().memory == memory);
  CHECK(simulated_device::faults() + simulated_device::races() == "");
}

TEST_CASE("a plan from a preset, made without a GPU, runs within its limit on one") {
  network m;
  auto const step = training_step(m, batch(), cross_entropy{}, adamw{});
  for (auto const& figures :
       {roofline::a100(), roofline::h100(), roofline::h200(), roofline::rtx3090(), roofline::rtx4090()}) {
    auto const whole = plan_in_order(step.program).arena_bytes;
    auto const found = optimize(step, neap::swap{}, figures, memory_limit{whole});
    REQUIRE(found.fits);
    simulated_device::reset(3);
    cuda_backend device;
    trainer run(step, found.placed, device);
    run(batch());
    CHECK(run.program().device_bytes() <= whole);
    CHECK(figures.rate(dtype::bf16) > figures.rate(dtype::f32));
  }
}
