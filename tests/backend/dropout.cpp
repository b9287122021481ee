#include <neap/backend/kernels/dropout.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace neap;
using namespace neap_test;

TEST_CASE("dropout keeps what its key says, in any layout, again and again") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 80; ++round) {
    dtype const t = floating_types[round % 4];
    shape const s = round < 8 ? shape{9001, 3} : random_shape(r);
    double const rate = round % 5 * 0.25;
    std::uint64_t const key = 0x123456789abcdefull * static_cast<unsigned>(round + 1), step = (1ull << 33) + r.below(9);
    auto x = random_view(t, s, r);
    auto const xv = values(x);
    owned y{t, s}, again{t, s}, mask{dtype::u8, s};
    dropout(one, y, x, key, step, rate, mask);
    std::vector<double> expected, kept;
    for (std::size_t i = 0; i < xv.size(); ++i) {
      bool const keep = dropout_keeps(key, step, static_cast<std::int64_t>(i), static_cast<float>(rate));
      kept.push_back(keep);
      expected.push_back(keep ? xv[i] / (1 - rate) : 0);
    }
    CHECK(values(mask) == kept);
    CHECK(near(y, expected, tolerance(t)));
    assign(again, xv);
    dropout(many, again, again, key, step, rate);
    CHECK(same_bits(again, y));
  }
}

TEST_CASE("the share that stays is right, steps and keys differ, infinities do not leak") {
  host_backend b{2};
  owned x{dtype::f32, {100000}}, y{dtype::f32, {100000}}, z{dtype::f32, {100000}};
  for (int i = 0; i < 100000; ++i) x.ref.as<float>()[i] = INFINITY;
  auto const share = [](owned const& o) {
    double n = 0;
    for (double v : values(o)) n += v != 0;
    return n / 100000;
  };
  dropout(b, y, x, 7, 1, 0.3);
  CHECK(share(y) == doctest::Approx(0.7).epsilon(0.01));
  dropout(b, z, x, 7, 2, 0.3);
  CHECK(!same_bits(y, z));
  dropout(b, z, x, 8, 1, 0.3);
  CHECK(!same_bits(y, z));
  dropout(b, z, x, 8, 1, 0);
  CHECK(share(z) == 1);
  dropout(b, z, x, 8, 1, 1);
  CHECK(share(z) == 0);
  CHECK_THROWS_AS(dropout(b, z, x, 8, 1, 1.5), error);
}
