// Every standard operator that has a kernel on a GPU, by the executable, on a simulated device: the host's results. What a
// machine with a GPU checks (bench/gpu/check.cpp).
#include "../../bench/gpu/operator_cases.hpp"

#include "../support/device/simulated_device.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

TEST_CASE("operators on a device give the host's results") {
  host_backend host(1);
  std::uint64_t seed = 0;
  for (auto const& c : bench::operator_cases()) {
    CAPTURE(c.name);
    simulated_device::reset(++seed);
    cuda_backend device;
    auto const expected = bench::run_case(c, host);
    auto const got = bench::run_case(c, device);
    for (std::size_t k = 0; k < got.size(); ++k) {
      auto const t = c.program.type(c.program.kept()[k]).element;
      CHECK(bench::difference(expected[k], got[k], t) <= bench::tolerance(t));
    }
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
  }
}
