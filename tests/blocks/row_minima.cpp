#include <neap/blocks/row_minima.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

using namespace neap;

TEST_CASE("row minima: each element is the least of the sums that reach it, and of what was there") {
  std::mt19937_64 rng(5);
  int lowered = 0, kept = 0;
  for (int round = 0; round < 3000; ++round) {
    int const to = 1 + static_cast<int>(rng() % detail::max_row_width);
    std::vector<std::vector<double>> rows(6);
    for (auto& r : rows) {
      r.resize(detail::max_row_width + 2 * detail::row_run);
      for (auto& x : r) x = static_cast<double>(rng() % 50);
    }
    detail::chunk_times times;
    for (auto& x : times) x = static_cast<double>(rng() % 60);
    std::vector<detail::row_sum> sums(1 + rng() % 5);
    for (auto& s : sums)
      s = {static_cast<double>(rng() % 20), rows[rng() % 6].data(), rows[rng() % 6].data(),
           static_cast<int>(rng() % static_cast<unsigned>(to))};
    auto expected = times;
    for (auto const& s : sums) {
      bool any = false;
      for (int i = s.from; i < to; ++i) {
        auto const k = static_cast<std::size_t>(i);
        any |= s.extra + s.tail[i] + s.head[i] < times[k];
        expected[k] = std::min(expected[k], s.extra + s.tail[i] + s.head[i]);
      }
      // Up to a vector behind the last element is looked at: then the answer may be yes without need.
      if (any) REQUIRE(detail::lowers(times, s, to));
      lowered += any, kept += !any;
    }
    detail::take_minima(times, sums.data(), sums.data() + sums.size(), to);
    for (int i = 0; i < to; ++i) REQUIRE(times[static_cast<std::size_t>(i)] == expected[static_cast<std::size_t>(i)]);
  }
  CHECK(lowered > 1000);
  CHECK(kept > 10);
}
