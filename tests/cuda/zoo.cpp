// The zoo on a simulated device, by the host's kernels: the operations of a step, planned at limits 1.0 and 0.5, are ordered
// wherever they touch the same bytes; the host's losses and weights to the bit. A wait that is left out is seen.
#include <neap/cuda.hpp>

#include <neap/execute/trainer.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>

#include "../support/device/simulated_device.hpp"
#include "../support/zoo_toys.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

struct outcome {
  std::vector<double> losses;
  std::vector<std::vector<float>> weights;
  bool operator==(outcome const&) const = default;
};

template <class Model, class Batch, class Loss, class Backend, class Plan>
outcome trained(Model const& model, Batch const& batch, Loss const& loss, Backend& backend, bool captured,
                Plan const& plan_of) {
  Model copy = model;
  auto const step = training_step(copy, batch, loss, adamw{.rate = 0.01}, {.clip_norm = 5});
  outcome o;
  {
    trainer run(step, plan_of(step), backend, {.graph = captured});
    for (int i = 0; i < 2; ++i) o.losses.push_back(run(batch));
  }
  for (auto const& w : named_tensors(copy, role::weight)) o.weights.push_back(w.tensor.template values<float>());
  return o;
}
template <class Step>
auto within(Step const& step, double ratio) {
  search_options few;
  few.iterations = 100;
  return optimize(step, zip(rematerialize{} | truncate(12), neap::swap{1e9} | truncate(4)), few,
                  memory_limit::of_original(ratio))
      .placed;
}

}  // namespace

TEST_CASE("the zoo on a device: a step's operations are ordered, planned at limits 1.0 and 0.5") {
  std::uint64_t seed = 100;
  std::size_t waits = 0, caught = 0;
  for_each_zoo_toy([&](char const* name, auto model, auto const& batch, auto const& loss) {
    CAPTURE(std::string(name));
    initialise(model, 5);
    host_backend host(1);
    auto const expected =
        trained(model, batch, loss, host, true, [](auto const& step) { return plan_in_order(step.program); });
    for (double const ratio : {1.0, 0.5})
      for (bool const captured : {true, false}) {
        CAPTURE(ratio);
        CAPTURE(captured);
        simulated_device::reset(++seed);
        cuda_backend device;
        CHECK(trained(model, batch, loss, device, captured, [&](auto const& step) { return within(step, ratio); }) ==
              expected);
        CHECK(simulated_device::faults() == "");
        CHECK(simulated_device::races() == "");
      }
    // The first and the middle one of the plan's waits.
    for (int const part : {0, 1}) {
      bool is_there = false;
      simulated_device::reset(++seed);
      cuda_backend device;
      bool seen = false;
      try {
        auto const got = trained(model, batch, loss, device, true, [&](auto const& step) {
          auto p = within(step, 0.5);
          is_there = !p.waits.empty();
          if (is_there) p.waits.erase(p.waits.begin() + static_cast<std::ptrdiff_t>(part * p.waits.size() / 2));
          return p;
        });
        seen = simulated_device::races() != "" || got != expected;
      } catch (error const&) { seen = true; }  // the capture ends before a transfer does
      waits += is_there;
      caught += is_there && seen;
    }
  });
  MESSAGE(waits << " waits left out, " << caught << " of them seen");
  CHECK(waits >= 10);
  CHECK(2 * caught > waits);
}
