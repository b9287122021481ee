#include <neap/backend/kernels/interpolate.hpp>

#include <neap/core/philox.hpp>

#include <array>
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

namespace {

using neap::interpolation;
using neap::shape;
using numbers = std::vector<double>;

numbers draw(std::int64_t n, std::uint64_t seed) {
  neap::random_stream r{seed};
  numbers v(static_cast<std::size_t>(n));
  for (auto& x : v) x = double(r.uniform()) - 0.5;
  return v;
}
neap::tensor_ref dense(numbers& v, shape d) { return {v.data(), neap::dtype::f64, d, neap::dense_strides(d)}; }

double position(std::int64_t i, std::int64_t in, std::int64_t out, neap::interpolate_options o) {
  if (o.align_corners) return out > 1 ? double(i) * double(in - 1) / double(out - 1) : 0;
  return std::max(0., (double(i) + 0.5) * double(in) / double(out) - 0.5);
}

}  // namespace

TEST_CASE("interpolation agrees with the definition, its gradient is the adjoint, threads change nothing") {
  neap::random_stream r{5};
  for (int round = 0; round < 60; ++round) {
    neap::interpolate_options const o{round % 3 ? interpolation::bilinear : interpolation::nearest, round % 3 == 2};
    auto const e = [&] { return std::int64_t{1} + r.below(round < 3 ? 1 : 9); };
    shape const xs{2, 3, e(), e()}, ys{2, 3, e(), e()};
    auto x = draw(elements(xs), 1), dy = draw(elements(ys), 2);
    numbers y(dy.size()), dx(x.size(), 9), y1 = y, dx1 = dx;
    neap::host_backend one{1}, three{3};
    neap::interpolate(one, dense(x, xs), dense(y, ys), o);
    neap::interpolate(three, dense(x, xs), dense(y1, ys), o);
    neap::interpolate_gradient(one, dense(dy, ys), dense(dx, xs), o);
    neap::interpolate_gradient(three, dense(dy, ys), dense(dx1, xs), o);
    CHECK(y == y1);
    CHECK(dx == dx1);
    double worst = 0, a = 0, b = 0;
    for (std::size_t i = 0; i < y.size(); ++i) a += y[i] * dy[i];
    for (std::size_t i = 0; i < x.size(); ++i) b += x[i] * dx[i];
    CHECK(std::abs(a - b) < 1e-12);
    auto at = [&](std::int64_t p, std::int64_t i, std::int64_t j) {
      i = std::min(i, xs[2] - 1), j = std::min(j, xs[3] - 1);
      return x[static_cast<std::size_t>((p * xs[2] + i) * xs[3] + j)];
    };
    for (std::int64_t p = 0; p < 6; ++p)
      for (std::int64_t i = 0; i < ys[2]; ++i)
        for (std::int64_t j = 0; j < ys[3]; ++j) {
          double want;
          if (o.mode == interpolation::nearest) {
            want = at(p, i * xs[2] / ys[2], j * xs[3] / ys[3]);
          } else {
            double const u = position(i, xs[2], ys[2], o), v = position(j, xs[3], ys[3], o);
            auto const k = std::int64_t(u), l = std::int64_t(v);
            double const s = u - double(k), t = v - double(l);
            want = (1 - s) * ((1 - t) * at(p, k, l) + t * at(p, k, l + 1)) +
                   s * ((1 - t) * at(p, k + 1, l) + t * at(p, k + 1, l + 1));
          }
          worst = std::max(worst, std::abs(want - y[static_cast<std::size_t>((p * ys[2] + i) * ys[3] + j)]));
        }
    CHECK(worst < 1e-13);
  }
}

TEST_CASE("interpolation refuses what does not fit") {
  neap::host_backend host{1};
  numbers x(16), y(16);
  CHECK_THROWS_AS(neap::interpolate(host, dense(x, {1, 1, 2, 2}), dense(y, {1, 2, 2, 2}), {}), neap::error);
}
