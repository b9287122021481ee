#include <neap/backend/kernels/softmax.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace neap;
using namespace neap_test;

TEST_CASE("softmax, its logarithm and their gradients agree with the formulas") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 200; ++round) {
    dtype const t = floating_types[round % 4];
    shape s = random_shape(r, 3);
    s.push_back(1 + static_cast<std::int64_t>(r.below(round % 3 ? 300 : 20)));
    auto const n = static_cast<std::size_t>(s.back());
    auto x = random_view(t, s, r, true, true, -10, 10), dy = random_view(t, s, r, true);
    auto const xv = values(x), gv = values(dy);
    std::vector<double> y(xv.size()), log_y(xv.size()), dx(xv.size()), log_dx(xv.size());
    owned ys{t, s}, ls{t, s};
    softmax(one, ys, x);
    log_softmax(one, ls, x);
    auto const yt = values(ys), lt = values(ls);  // the backward pass starts from rounded results
    for (std::size_t row = 0; row < xv.size(); row += n) {
      double const top = *std::max_element(&xv[row], &xv[row] + n);
      double sum = 0, dot = 0, total = 0;
      for (std::size_t i = row; i < row + n; ++i) {
        sum += std::exp(xv[i] - top);
        dot += yt[i] * gv[i];
        total += gv[i];
      }
      for (std::size_t i = row; i < row + n; ++i) {
        y[i] = std::exp(xv[i] - top) / sum;
        log_y[i] = xv[i] - top - std::log(sum);
        dx[i] = yt[i] * (gv[i] - dot);
        log_dx[i] = gv[i] - std::exp(lt[i]) * total;
      }
    }
    double const within = 4 * tolerance(t);
    CHECK(near(ys, y, within));
    CHECK(near(ls, log_y, within));
    owned d{t, s}, dl{t, s};
    softmax_backward(one, d, dy, ys);
    log_softmax_backward(one, dl, dy, ls);
    CHECK(near(d, dx, within));
    CHECK(near(dl, log_dx, within));

    // In place, and on more threads.
    owned dense{t, s}, gradient{t, s}, on_y{ys};
    assign(dense, xv), assign(gradient, gv);
    softmax(many, dense, dense);
    CHECK(same_bits(dense, ys));
    softmax_backward(many, gradient, gradient, ys);
    CHECK(same_bits(gradient, d));
    softmax_backward(many, on_y, dy, on_y);
    CHECK(same_bits(on_y, d));
    assign(dense, xv);
    log_softmax(many, dense, dense);
    CHECK(same_bits(dense, ls));
  }
}

TEST_CASE("rows with infinities") {
  host_backend b{1};
  owned x{dtype::f32, {2, 40}};
  for (int i = 0; i < 80; ++i) x.ref.as<float>()[i] = -INFINITY;
  x.ref.as<float>()[7] = 3;
  softmax(b, x, x);
  auto const v = values(x);
  CHECK(v[7] == 1);
  CHECK(v[8] == 0);
  CHECK(std::isnan(v[41]));
}

TEST_CASE("what does not fit is refused") {
  host_backend b{1};
  owned x{dtype::f32, {4, 5}}, y{dtype::f64, {4, 5}}, z{dtype::f32, {5, 4}}, i{dtype::i64, {4, 5}};
  CHECK_THROWS_AS(softmax(b, y, x), error);
  CHECK_THROWS_AS(softmax(b, z, x), error);
  CHECK_THROWS_AS(softmax(b, i, i), error);
  tensor_ref const transposed{x.ref.data, dtype::f32, {5, 4}, {1, 5}};
  CHECK_THROWS_WITH_AS(softmax(b, z, transposed), "softmax: the last axis must be contiguous", error);
}
