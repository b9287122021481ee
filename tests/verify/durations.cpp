#include <neap/verify/durations.hpp>

#include <neap/simulate/roofline.hpp>

#include "../support/opaque_graph.hpp"
#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

using namespace neap;

TEST_CASE("the verifier finds the times that planners use") {
  auto odd = roofline::host(2);
  odd.set_rate(dtype::f16, 7e11);
  odd.half_flops = 1e4, odd.half_bytes = 123;
  odd.free_ops = {"bwd", "unary", "transpose"};
  for (auto const& model : {roofline::h100_like(), roofline::host(3), odd, roofline{}})
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      CAPTURE(seed);
      auto const g = testing::random_graph(seed, {.swaps = 2});
      auto const h = testing::opaque_graph(seed);
      stated_durations const said({{}, false, model}), given({{}, true, model});
      for (auto o : g.ops()) {
        CHECK(said(g, o) == doctest::Approx(model(g, o)).epsilon(1e-12));
        CHECK(given(g, o) == doctest::Approx(given_or{model}(g, o)).epsilon(1e-12));
      }
      for (auto o : h.ops()) CHECK(said(h, o) == doctest::Approx(model(h, o)).epsilon(1e-12));
    }
}
