#include <neap/backend/kernels/gather.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap_test;

TEST_CASE("gather and scatter_add along any axis") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 200; ++round) {
    dtype const t = all_types[round % 8];
    shape whole = random_shape(r, 3, 9);
    whole.push_back(1 + r.below(50));
    int const axis = static_cast<int>(r.below(static_cast<std::uint32_t>(whole.rank())));
    shape picked = whole;
    for (int a = 0; a < whole.rank(); ++a)
      picked[a] = 1 + r.below(static_cast<std::uint32_t>(a == axis ? 40 : whole[a]));
    auto x = random_view(t, whole, r, false, true, 0, 9);
    owned index{dtype::i64, picked};
    randomize(index, r, 0, static_cast<double>(whole[axis]));
    owned y{t, picked}, y2{t, picked};
    gather(one, y, x, index, round % 2 ? axis : axis - whole.rank());
    gather(many, y2, x, index, axis);
    CHECK(same_bits(y, y2));
    auto const xv = values(x), iv = values(index), yv = values(y);
    std::vector<double> expected, sums(xv.size());
    for (std::size_t i = 0; i < iv.size(); ++i) {
      std::size_t rest = i, at = 0, scale = 1;
      for (int a = whole.rank() - 1; a >= 0; --a) {
        std::size_t place = rest % static_cast<std::size_t>(picked[a]);
        rest /= static_cast<std::size_t>(picked[a]);
        if (a == axis) place = static_cast<std::size_t>(iv[i]);
        at += place * scale;
        scale *= static_cast<std::size_t>(whole[a]);
      }
      expected.push_back(xv[at]);
      sums[at] += yv[i];
    }
    CHECK(yv == expected);
    if (!is_floating(t)) continue;
    owned d{computed_in(t), whole}, d2{computed_in(t), whole};
    scatter_add(one, numbered_sums{d, {}}, y, index, axis);
    scatter_add(many, numbered_sums{d2, {}}, y, index, axis);
    CHECK(same_bits(d, d2));
    CHECK(near(d, sums, 20 * tolerance(computed_in(t))));
  }
  owned x{dtype::f32, {3}}, index{dtype::i64, {2}}, y{dtype::f32, {2}};
  index.ref.as<std::int64_t>()[1] = -1;
  CHECK_THROWS_WITH_AS(gather(one, y, x, index, 0), "gather: place -1 is not below 3", error);
}
