#include <neap/verify/bound.hpp>

#include <neap/simulate/lower_bound.hpp>

#include "../support/padded_graph.hpp"
#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

using namespace neap;

TEST_CASE("the verifier finds the bound that planners claim") {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    CAPTURE(seed);
    memory_options const options{.alignment = seed % 2 ? 64 : 1, .takeover = seed % 3 != 0};
    auto const padded = testing::padded_graph(seed);
    for (bool const in_parts : {false, true})
      CHECK(detail::plan_check::peak_bound_check(padded, options)(in_parts) ==
            peak_lower_bound(padded, options, in_parts).bytes);
    if (seed % 20) continue;
    auto const g = testing::random_graph(seed, {.copies = 2, .swaps = 2});
    for (bool const in_parts : {false, true})
      CHECK(detail::plan_check::peak_bound_check(g, options)(in_parts) == peak_lower_bound(g, options, in_parts).bytes);
  }
}
