#include <neap/blocks/range_sum.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

using namespace neap;

TEST_CASE("range_sum: every range of rows of every length, whatever else is in the row") {
  random_stream draw(1);
  for (std::size_t n = 1; n < 40; ++n) {
    std::vector<double> row(n);
    for (auto& x : row) x = static_cast<double>(draw.below(20));
    auto const huge = draw.below(static_cast<std::uint32_t>(n));
    row[huge] = 1e30;
    range_sum const sum(row);
    for (std::size_t from = 0; from < n; ++from) {
      CHECK(sum[from] == row[from]);
      for (std::size_t to = from + 1; to <= n; ++to) {
        auto const expected = std::accumulate(row.begin() + static_cast<std::ptrdiff_t>(from),
                                              row.begin() + static_cast<std::ptrdiff_t>(to), 0.0);
        if (from <= huge && huge < to) CHECK(sum(from, to) == doctest::Approx(expected));
        else CHECK(sum(from, to) == expected);
      }
    }
  }
}
