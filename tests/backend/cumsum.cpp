#include <neap/backend/kernels/cumsum.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap_test;

TEST_CASE("running sums of any type, layout and axis, on any number of threads, and in place") {
  random_stream r{7};
  host_backend one{1}, many{3};
  for (int round = 0; round < 200; ++round) {
    dtype const t = all_types[round % 8];
    shape dims = random_shape(r, 3, 9);
    dims.push_back(1 + r.below(round % 3 ? 12 : 700));
    int const axis = static_cast<int>(r.below(static_cast<std::uint32_t>(dims.rank())));
    bool const reverse = r.below(2);
    auto const x = random_view(t, dims, r, false, true, -2, 2);
    dtype const out = is_floating(t) ? t : dtype::i64;
    owned y{out, dims}, y2{out, dims};
    cumsum(one, y, x, axis, reverse);
    cumsum(many, y2, x, axis, reverse);
    CHECK(same_bits(y, y2));
    auto expected = values(x);
    std::int64_t inner = 1;
    for (int a = axis + 1; a < dims.rank(); ++a) inner *= dims[a];
    auto const n = static_cast<std::int64_t>(expected.size());
    for (std::int64_t k = 0; k < n; ++k) {
      std::int64_t const i = reverse ? n - 1 - k : k, place = i / inner % dims[axis];
      if (reverse ? place + 1 < dims[axis] : place > 0)
        expected[static_cast<std::size_t>(i)] += expected[static_cast<std::size_t>(reverse ? i + inner : i - inner)];
    }
    CHECK(near(y, expected, 4 * tolerance(out)));
    if (out != t) continue;
    owned z{t, dims};
    assign(z, values(x));
    cumsum(many, z, z, axis, reverse);
    CHECK(same_bits(y, z));
  }
}
