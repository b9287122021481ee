#include <neap/memory/exact/set_sums.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace {

using neap::detail::set_sum;
using neap::detail::set_sums;

template <class Unit>
void check_against_a_plain_look_up(std::uint32_t seed) {
  std::mt19937 rng(seed);
  neap::plain_vector<set_sum<Unit>> given;
  auto const most = Unit{1} << rng() % (8 * sizeof(Unit) - 2);
  for (auto n = static_cast<std::uint32_t>(rng() % 200); n > 0; --n)
    given.push_back({static_cast<Unit>((std::uint64_t{rng()} << 32 | rng()) % static_cast<std::uint64_t>(most)), n});
  auto sorted = given;
  std::sort(sorted.begin(), sorted.end());
  set_sums<Unit> const sums(given);
  REQUIRE(sums.empty() == given.empty());
  REQUIRE(sums.end() - sums.begin() == static_cast<std::ptrdiff_t>(given.size()));
  auto const check = [&](Unit bytes) {
    auto const expected = std::lower_bound(sorted.begin(), sorted.end(), set_sum<Unit>{bytes, 0});
    REQUIRE(sums.from(bytes) - sums.begin() == expected - sorted.begin());
    if (expected != sorted.end()) {
      CHECK(sums.from(bytes)->sum == expected->sum);
      CHECK(sums.from(bytes)->set == expected->set);
    }
  };
  for (auto const& s : sorted) check(s.sum - 1), check(s.sum), check(s.sum + 1);
  for (Unit bytes : {Unit{-7}, Unit{0}, Unit{1}, most, std::numeric_limits<Unit>::max()}) check(bytes);
}

}  // namespace

TEST_CASE("set sums: the first of at least so many bytes, as a plain look-up finds it") {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    check_against_a_plain_look_up<std::int32_t>(seed);
    check_against_a_plain_look_up<std::int64_t>(seed);
  }
  CHECK(set_sums<int>().empty());
  CHECK(set_sums<int>().from(0) == set_sums<int>().end());
}
