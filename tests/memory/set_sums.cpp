#include <neap/memory/guess/set_sums.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

using neap::detail::set_sum;
using neap::detail::set_sums;

void check_against_a_plain_look_up(std::uint32_t seed) {
  std::mt19937 rng(seed);
  neap::plain_vector<set_sum> given;
  auto const most = std::int64_t{1} << rng() % (8 * sizeof(std::int64_t) - 2);
  for (auto n = static_cast<std::uint32_t>(rng() % 200); n > 0; --n)
    given.push_back(
        {static_cast<std::int64_t>((std::uint64_t{rng()} << 32 | rng()) % static_cast<std::uint64_t>(most)), n});
  auto sorted = given;
  std::sort(sorted.begin(), sorted.end());
  set_sums const sums(given);
  REQUIRE(sums.empty() == given.empty());
  REQUIRE(sums.end() - sums.begin() == static_cast<std::ptrdiff_t>(given.size()));
  auto const check = [&](std::int64_t bytes) {
    auto const expected = std::lower_bound(sorted.begin(), sorted.end(), set_sum{bytes, 0});
    REQUIRE(sums.from(bytes) - sums.begin() == expected - sorted.begin());
    if (expected != sorted.end()) {
      CHECK(sums.from(bytes)->sum == expected->sum);
      CHECK(sums.from(bytes)->set == expected->set);
    }
  };
  for (auto const& s : sorted) check(s.sum - 1), check(s.sum), check(s.sum + 1);
  for (std::int64_t bytes :
       {std::int64_t{-7}, std::int64_t{0}, std::int64_t{1}, most, std::numeric_limits<std::int64_t>::max()})
    check(bytes);
}

}  // namespace

TEST_CASE("set sums: the first of at least so many bytes, as a plain look-up finds it") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) { check_against_a_plain_look_up(seed); }
  CHECK(set_sums().empty());
  CHECK(set_sums().from(0) == set_sums().end());
}
