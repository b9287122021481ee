#include <neap/blocks/range_best.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <algorithm>

using namespace neap;

TEST_CASE("range_best: every range of rows of every length") {
  random_stream draw(1);
  for (std::size_t n = 1; n < 40; ++n) {
    std::vector<int> row(n);
    for (auto& x : row) x = static_cast<int>(draw.below(20)) - 10;
    range_best<int, best_is::least> const least(row);
    range_best<int, best_is::most> const most(row);
    for (std::size_t from = 0; from < n; ++from)
      for (std::size_t to = from + 1; to <= n; ++to) {
        auto const [low, high] = std::minmax_element(row.begin() + static_cast<std::ptrdiff_t>(from),
                                                     row.begin() + static_cast<std::ptrdiff_t>(to));
        CHECK(least(from, to) == *low);
        CHECK(most(from, to) == *high);
      }
  }
}
