// The cases of bench/gpu/check.sh that libraries may compute, on a simulated device by the GPU's own kernels and by the
// libraries: the host's results but for rounding.
#include "../../bench/gpu/operator_cases.hpp"

#include <neap/cuda.hpp>
#include <neap/cuda/cublaslt.hpp>
#include <neap/cuda/cudnn.hpp>

#include "../support/device/simulated_device.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>

using namespace neap;
using namespace neap::testing;

TEST_CASE("products with epilogues, chains, convolutions and attention, by our own kernels and by libraries") {
  host_backend host(1);
  std::size_t calls = 0, cases = 0;
  for (auto const& c : bench::operator_cases()) {
    bool chosen = false;
    for (auto const* const name : {"fused", "conv2d", "attention"}) chosen = chosen || c.name.starts_with(name);
    if (!chosen) continue;
    ++cases;
    auto const expected = bench::run_case(c, host);
    for (bool const by_libraries : {false, true}) {
      CAPTURE(c.name);
      CAPTURE(by_libraries);
      simulated_device::reset(cases);
      cuda_backend device;
      if (by_libraries) {
        auto const library = std::make_shared<cudnn>(device.device());
        device.use_products(std::make_shared<cublaslt>(device.device()));
        device.use_convolutions(library);
        device.use_attention(library);
      }
      auto const got = bench::run_case(c, device);
      REQUIRE(got.size() == expected.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        auto const t = c.program.type(c.program.kept()[k]).element;
        CHECK(bench::difference(expected[k], got[k], t) <= bench::tolerance(t));
      }
      auto const made = simulated_device::calls("cudnnBackendExecute") + simulated_device::calls("cublasLtMatmul");
      if (!by_libraries) CHECK(made == 0);
      else calls += made;
      CHECK(simulated_device::faults() == "");
      CHECK(simulated_device::races() == "");
    }
  }
  CHECK(cases >= 47);
  CHECK(calls >= cases - 18);  // chains, rows, and attention in f32, are our own
}
