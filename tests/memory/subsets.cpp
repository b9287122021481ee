#include <neap/memory/guess/subsets.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace neap;

TEST_CASE("sets of k of n: each once, ascending, as many as the choices") {
  for (std::size_t n = 1; n <= 12; ++n)
    for (std::size_t k = 1; k <= n; ++k) {
      std::vector<std::uint32_t> sets;
      detail::for_each_set(n, k, [&](std::uint32_t set) { sets.push_back(set); });
      REQUIRE(detail::choices(n, k) == doctest::Approx(static_cast<double>(sets.size())));
      for (std::size_t i = 0; i < sets.size(); ++i) {
        REQUIRE(static_cast<std::size_t>(std::popcount(sets[i])) == k);
        REQUIRE((sets[i] >> n) == 0);
        if (i > 0) REQUIRE(sets[i - 1] < sets[i]);
        std::uint32_t again = 0;
        detail::for_each_member(sets[i], [&](std::size_t m) {
          REQUIRE((again >> m) == 0);  // ascending
          again |= std::uint32_t{1} << m;
        });
        REQUIRE(again == sets[i]);
      }
    }
  int wide = 0;  // all 31 bits
  detail::for_each_set(31, 30, [&](std::uint32_t) { ++wide; });
  CHECK(wide == 31);
}
