// Every standard operator that has a kernel on a GPU, by the executable, on a simulated device: the host's results. What a
// machine with a GPU checks (bench/gpu/check.cpp).
#include "../../bench/gpu/operator_cases.hpp"

#include "../support/device/simulated_device.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace neap;
using namespace neap::testing;

TEST_CASE("operators on a device give the host's results") {
  host_backend host(1);
  std::set<std::string> without;
  std::uint64_t seed = 0;
  for (auto const& c : bench::operator_cases()) {
    CAPTURE(c.name);
    simulated_device::reset(++seed);
    cuda_backend device;
    auto const expected = bench::run_case(c, host);
    bench::bytes_list got;
    try {
      got = bench::run_case(c, device);
    } catch (error const& e) {
      std::string const line = e.what();
      CAPTURE(line);
      CHECK(line.find("has no kernel on the backend cuda") != std::string::npos);
      without.insert(c.name);
      continue;
    }
    for (std::size_t k = 0; k < got.size(); ++k)
      CHECK(bench::difference(expected[k], got[k], c.program.type(c.program.kept()[k]).element) <= 1e-5);
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
  }
  std::string names;
  for (auto const& name : without) names += name + ", ";
  MESSAGE("without a kernel: " << names);
  CHECK(without.size() < 8);
}
