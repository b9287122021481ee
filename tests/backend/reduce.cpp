#include <neap/backend/kernels/reduce.hpp>

#include "../support/sanitized.hpp"
#include "testing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace neap;
using namespace neap_test;

namespace {

std::vector<double> expected_reduction(reduction kind, std::vector<double> const& x, shape const& s, unsigned mask) {
  std::size_t outputs = 1, terms = 1;
  for (int a = 0; a < s.rank(); ++a) (mask >> a & 1 ? terms : outputs) *= static_cast<std::size_t>(s[a]);
  double const start = kind == reduction::max   ? -INFINITY
                       : kind == reduction::min ? INFINITY
                                                : kind == reduction::product;
  std::vector<double> y(outputs, start);
  for (std::size_t i = 0; i < x.size(); ++i) {
    std::size_t rest = i, at = 0, scale = 1;
    for (int a = s.rank() - 1; a >= 0; --a) {
      auto const extent = static_cast<std::size_t>(s[a]);
      if (!(mask >> a & 1)) at += rest % extent * scale, scale *= extent;
      rest /= extent;
    }
    if (kind == reduction::max) y[at] = std::max(y[at], x[i]);
    else if (kind == reduction::min) y[at] = std::min(y[at], x[i]);
    else if (kind == reduction::product) y[at] *= x[i];
    else y[at] += kind == reduction::mean ? x[i] / static_cast<double>(terms) : x[i];
  }
  return y;
}

}  // namespace

TEST_CASE("reductions of random views over random axes") {
  random_stream r{1};
  host_backend one{1}, many{3};
  shape const large[] = {{300, 700}, {7, 90000}, {90000, 7}, {20, 3, 50, 40}, {200000}, {1, 200000}, {2, 300, 300}};
  for (int round = 0; round < neap::testing::cases(700); ++round) {
    dtype const t = all_types[round % 7];
    shape const s = round % 10 == 0 ? large[round / 10 % 7] : random_shape(r, 5);
    bool const big = elements(s) > 10000;
    unsigned const mask = r.below(1u << s.rank());
    auto const kind = static_cast<reduction>(big ? r.below(4) : r.below(5));
    if (kind == reduction::mean && !is_floating(t)) continue;
    if (big && (t == dtype::bf16 || t == dtype::f16 || t == dtype::u8)) continue;
    auto x = random_view(t, s, r, false, true, is_floating(t) ? 0.5 : 0, is_floating(t) ? 1.4 : big ? 3 : 2.1);
    std::vector<int> axes;
    shape kept;
    for (int a = 0; a < s.rank(); ++a) {
      if (mask >> a & 1) axes.push_back(round % 2 ? a : a - s.rank());
      else kept.push_back(s[a]);
    }
    dtype const u = round % 3 == 0 && is_floating(t) ? dtype::f64 : t == dtype::u8 ? dtype::i64 : t;
    tensor_type const type{t, s};
    std::vector<std::byte> work(static_cast<std::size_t>(reduce_workspace(type, u, axes)) + 1);
    owned y{u, kept}, z{u, kept};
    work.back() = std::byte{77};
    reduce(one, kind, y, x, axes, work.data());
    reduce(many, kind, z, x, axes, work.data());
    CHECK(work.back() == std::byte{77});
    CHECK(same_bits(y, z));
    CHECK(near(y, expected_reduction(kind, values(x), s, mask),
               big && t == dtype::f32 ? 1e-5 : 4 * std::max(tolerance(u), t == dtype::f32 ? 1e-6 : 0)));
  }
}

TEST_CASE("sum_to_shape undoes a broadcast") {
  random_stream r{2};
  host_backend b{2};
  for (shape const& to :
       {shape{}, shape{70}, shape{7, 1}, shape{1, 7, 70}, shape{5, 1, 1}, shape{1}, shape{5, 7, 70}}) {
    auto x = random_dense(dtype::f32, {5, 7, 70}, r);
    owned y{dtype::f32, to};
    std::vector<std::byte> work(
        static_cast<std::size_t>(sum_to_shape_workspace({dtype::f32, {5, 7, 70}}, {dtype::f32, to})));
    sum_to_shape(b, y, x, work.data());
    unsigned mask = 0;
    for (int a = 0; a < 3; ++a)
      if (a < 3 - to.rank() || to[a - 3 + to.rank()] == 1) mask |= 1u << a;
    CHECK(near(y, expected_reduction(reduction::sum, values(x), {5, 7, 70}, mask), 1e-4));
  }
  owned y{dtype::f32, {3}};
  CHECK_THROWS_AS(sum_to_shape(b, y, random_dense(dtype::f32, {5, 7}, r), nullptr), error);
}

TEST_CASE("nothing to reduce, and NaN") {
  host_backend b{1};
  owned x{dtype::f32, {3, 0}}, y{dtype::f32, {3}};
  int const last[]{1};
  reduce(b, reduction::sum, y, x, last, nullptr);
  CHECK(values(y) == std::vector<double>{0, 0, 0});
  reduce(b, reduction::max, y, x, last, nullptr);
  CHECK(values(y)[0] == -INFINITY);
  owned n{dtype::f32, {2, 40}};
  n.ref.as<float>()[50] = NAN;
  owned m{dtype::f32, {2}};
  for (auto kind : {reduction::sum, reduction::mean, reduction::max, reduction::min, reduction::product}) {
    reduce(b, kind, m, n, last, nullptr);
    CHECK(values(m)[0] == 0);
    CHECK(std::isnan(values(m)[1]));
  }
}
