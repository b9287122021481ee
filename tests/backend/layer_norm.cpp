#include <neap/backend/kernels/layer_norm.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace neap;
using namespace neap_test;

namespace {

struct expected_norm {
  std::vector<double> y, mean, rstd, dx, dweight, dbias;
};

expected_norm layer_norm_of(std::vector<double> const& x, std::vector<double> const& g, std::vector<double> const& w,
                            std::vector<double> const& c, std::size_t n, double epsilon) {
  expected_norm e;
  e.dweight.assign(n, 0), e.dbias.assign(n, 0);
  for (std::size_t row = 0; row < x.size(); row += n) {
    double mean = 0, squares = 0, a = 0, s = 0;
    for (std::size_t i = 0; i < n; ++i) mean += x[row + i] / static_cast<double>(n);
    for (std::size_t i = 0; i < n; ++i) squares += std::pow(x[row + i] - mean, 2) / static_cast<double>(n);
    double const r = 1 / std::sqrt(squares + epsilon);
    e.mean.push_back(mean), e.rstd.push_back(r);
    for (std::size_t i = 0; i < n; ++i) {
      double const h = (x[row + i] - mean) * r;
      e.y.push_back(h * w[i] + c[i]);
      e.dweight[i] += g[row + i] * h;
      e.dbias[i] += g[row + i];
      a += g[row + i] * w[i] / static_cast<double>(n);
      s += g[row + i] * w[i] * h / static_cast<double>(n);
    }
    for (std::size_t i = 0; i < n; ++i) e.dx.push_back(r * (g[row + i] * w[i] - a - (x[row + i] - mean) * r * s));
  }
  return e;
}

}  // namespace

TEST_CASE("layer norm and its gradients agree with the formulas") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 200; ++round) {
    dtype const t = floating_types[round % 4], stat = t == dtype::f64 ? dtype::f64 : dtype::f32;
    shape s = round % 10 == 0 ? shape{500} : random_shape(r, 3);
    shape const rows = s;
    s.push_back(2 + static_cast<std::int64_t>(r.below(round % 3 ? 300 : 20)));
    auto const n = static_cast<std::size_t>(s.back());
    auto x = random_view(t, s, r, true), dy = random_view(t, s, r, true);
    auto w = random_dense(t, {s.back()}, r), c = random_dense(t, {s.back()}, r);
    int const affine = round % 3;  // 0: both, 1: weight, 2: none
    std::vector<double> wv = values(w), cv = values(c);
    if (affine == 2) wv.assign(n, 1);
    if (affine != 0) cv.assign(n, 0);
    tensor_ref const weight = affine == 2 ? tensor_ref{} : w.ref, bias = affine == 0 ? c.ref : tensor_ref{};
    auto const e = layer_norm_of(values(x), values(dy), wv, cv, n, 1e-3);

    owned y{t, s}, mean{stat, rows}, rstd{stat, rows};
    layer_norm(one, y, mean, rstd, x, weight, bias, 1e-3);
    double const within = 10 * tolerance(t);
    CHECK(near(y, e.y, within));
    CHECK(near(mean, e.mean, 10 * tolerance(stat)));
    CHECK(near(rstd, e.rstd, 100 * tolerance(stat)));
    owned in_place{t, s};
    assign(in_place, values(x));
    layer_norm(many, in_place, {}, {}, in_place, weight, bias, 1e-3);
    CHECK(same_bits(in_place, y));

    std::vector<std::byte> work(static_cast<std::size_t>(layer_norm_backward_workspace({t, s})));
    owned dx{t, s}, dw{t, {s.back()}}, dc{t, {s.back()}};
    owned dx2{t, s}, dw2{t, {s.back()}}, dc2{t, {s.back()}};
    layer_norm_backward(one, dx, dw, dc, dy, x, mean, rstd, weight, work.data());
    assign(dx2, values(dy));
    layer_norm_backward(many, dx2, {}, dc2, dx2, x, mean, rstd, weight, work.data());
    layer_norm_backward(many, {}, dw2, {}, dy, x, mean, rstd, weight, work.data());
    CHECK(same_bits(dx, dx2));
    CHECK(same_bits(dw, dw2));
    CHECK(same_bits(dc, dc2));
    CHECK(near(dx, e.dx, 3 * within));
    CHECK(near(dw, e.dweight, 3 * within));
    CHECK(near(dc, e.dbias, 3 * within));
  }
}

TEST_CASE("what does not fit is refused") {
  host_backend b{1};
  owned x{dtype::f32, {4, 5}}, w{dtype::f32, {4}}, m{dtype::f32, {4}};
  CHECK_THROWS_WITH_AS(layer_norm(b, x, m, m, x, w, {}, 1e-5), "layer_norm: f32[4] where 5 contiguous f32 are expected",
                       error);
}
