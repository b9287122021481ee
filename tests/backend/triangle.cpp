#include <neap/backend/kernels/triangle.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap_test;

TEST_CASE("one side of a diagonal, of any type and layout, and in place") {
  random_stream r{8};
  host_backend one{1}, many{3};
  for (int round = 0; round < 200; ++round) {
    dtype const t = all_types[round % 8];
    shape dims = random_shape(r, 2, 5);
    dims.push_back(1 + r.below(round % 3 ? 12 : 300)), dims.push_back(1 + r.below(round % 3 ? 12 : 300));
    std::int64_t const d = static_cast<std::int64_t>(r.below(40)) - 20, rows = dims[dims.rank() - 2],
                       columns = dims[dims.rank() - 1];
    bool const upper = r.below(2);
    auto const x = random_view(t, dims, r);
    owned y{t, dims}, y2{t, dims};
    triangle(one, y, x, d, upper);
    assign(y2, values(x));
    triangle(many, y2, y2, d, upper);
    CHECK(same_bits(y, y2));
    auto expected = values(x);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      auto const k = static_cast<std::int64_t>(i), row = k / columns % rows, column = k % columns;
      if (upper ? column - row < d : column - row > d) expected[i] = 0;
    }
    CHECK(values(y) == expected);
  }
}
