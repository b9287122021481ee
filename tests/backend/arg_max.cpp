#include <neap/backend/kernels/arg_max.hpp>

#include "testing.hpp"

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace neap;
using namespace neap_test;

TEST_CASE("arg_max finds the first largest along any axis of any view") {
  random_stream r{1};
  host_backend b{3};
  for (int round = 0; round < (testing::sanitized ? 10 : 300); ++round) {
    dtype const t = all_types[round % 8];
    shape s = random_shape(r, 3, 24);
    s.push_back(1 + r.below(90));
    int const axis = static_cast<int>(r.below(static_cast<std::uint32_t>(s.rank())));
    auto x = random_view(t, s, r, false, true, 0, 40);
    auto const xv = values(x);
    shape rest = s;
    rest.erase(axis);
    owned out{dtype::i64, rest};
    arg_max(b, out, x, round % 2 ? axis : axis - s.rank());
    std::size_t inner = 1;
    for (int a = axis + 1; a < s.rank(); ++a) inner *= static_cast<std::size_t>(s[a]);
    auto const n = static_cast<std::size_t>(s[axis]);
    std::vector<double> expected;
    for (std::size_t line = 0; line < xv.size() / n; ++line) {
      std::size_t const start = line / inner * inner * n + line % inner;
      std::size_t best = 0;
      for (std::size_t k = 1; k < n; ++k)
        if (xv[start + k * inner] > xv[start + best * inner]) best = k;
      expected.push_back(static_cast<double>(best));
    }
    CHECK(values(out) == expected);
  }
}

TEST_CASE("NaN is the largest; an empty axis is refused") {
  host_backend b{1};
  owned x{dtype::f32, {70}}, out{dtype::i64, {}}, empty{dtype::f32, {3, 0}};
  x.ref.as<float>()[40] = NAN, x.ref.as<float>()[60] = NAN, x.ref.as<float>()[3] = INFINITY;
  arg_max(b, out, x);
  CHECK(values(out)[0] == 40);
  for (int i = 0; i < 70; ++i) x.ref.as<float>()[i] = -INFINITY;
  arg_max(b, out, x);
  CHECK(values(out)[0] == 0);
  CHECK_THROWS_AS(arg_max(b, out, empty), error);
  owned small{dtype::bf16, {200}};
  for (int at : {199, 130, 7}) {  // of equals the first, a NaN above all
    small.ref.as<bf16>()[at] = bf16(3.f);
    arg_max(b, out, small);
    CHECK(values(out)[0] == at);
  }
  small.ref.as<bf16>()[150] = bf16(NAN), small.ref.as<bf16>()[160] = bf16(INFINITY);
  arg_max(b, out, small);
  CHECK(values(out)[0] == 150);
}
