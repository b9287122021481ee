// Neighbouring updates of one executable that depend on one another, or not, at random, by the GPU's own kernels: those that
// nothing orders are one launch, and the results are the host's.
#include <neap/cuda.hpp>

#include <neap/core/byte_block.hpp>
#include <neap/core/philox.hpp>
#include <neap/execute/executable.hpp>
#include <neap/execute/plan_like.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>

#include "../support/device/simulated_device.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

constexpr int weights = 5, updates = 12;

/// Updates of a few weights, each by a gradient or by another weight as it is then.
graph random_updates(random_stream& draw) {
  graph_editor e{operator_table(standard_operators::facets)};
  std::vector<value_id> weight, gradient, momentum;
  for (int i = 0; i < weights; ++i) {
    tensor_type const t{dtype::f32, {3 + i % 2}};
    weight.push_back(e.add_source(role::weight, t, "w" + std::to_string(i)));
    gradient.push_back(e.add_source(role::weight, t, "g" + std::to_string(i)));
    momentum.push_back(e.add_source(role::weight, t, "m" + std::to_string(i)));
  }
  for (int i = 0; i < updates; ++i) {
    auto const w = draw.below(weights), other = (w + 2 * draw.below(2)) % weights;  // of the same shape, or not
    bool const fits = w % 2 == other % 2 && w != other;
    value_id const by = fits ? weight[other] : gradient[w];
    if (draw.below(4) == 0) {
      auto const out = e.add(op::momentum{0.1, 0.9, 0, 0.01, false}, {weight[w], by, momentum[w]});
      weight[w] = out[0], momentum[w] = out[1];
    } else {
      weight[w] = e.add(op::sgd{0.1, i % 3 == 0 ? 0.01 : 0}, {weight[w], by})[0];
    }
  }
  for (auto v : weight) e.keep(v, role::output);
  return graph(std::move(e).finish());
}

template <class Backend>
std::vector<float> run(graph const& g, Backend& backend) {
  std::vector<byte_block> memory;
  std::vector<source_binding> bound;
  auto const plan = plan_in_order(g);
  float next = 0;
  for (auto s : plan.graph.sources()) {
    memory.emplace_back(64, 64);
    for (int k = 0; k < 16; ++k) reinterpret_cast<float*>(memory.back().data())[k] = std::sin(next += 1);
    bound.push_back({s, memory.back().data()});
  }
  {
    executable<Backend> step(plan, bound, backend, {.graph = false});
    step();
    step();
  }
  std::vector<float> all;
  for (auto const& m : memory)
    for (int k = 0; k < 3; ++k) all.push_back(reinterpret_cast<float const*>(m.data())[k]);
  return all;
}

}  // namespace

TEST_CASE("updates that depend on one another run in their order, others in one launch") {
  host_backend host(1);
  std::size_t launches = 0, ops = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    random_stream draw(seed);
    auto const g = random_updates(draw);
    auto const expected = run(g, host);
    simulated_device::reset(seed);
    cuda_backend device;
    auto const got = run(g, device);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
    launches += simulated_device::counts().kernels / 2, ops += updates;
  }
  MESSAGE(ops << " updates, " << launches << " launches");
  CHECK(launches < ops);
  CHECK(2 * launches > ops / 2);
}
