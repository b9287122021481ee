#include <neap/backend/kernels/rms_norm.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace neap;
using namespace neap_test;

TEST_CASE("rms norm and its gradients agree with the formulas") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 120; ++round) {
    dtype const t = floating_types[round % 4], stat = t == dtype::f64 ? dtype::f64 : dtype::f32;
    shape s = random_shape(r, 3);
    shape const rows = s;
    s.push_back(1 + static_cast<std::int64_t>(r.below(300)));
    auto const n = static_cast<std::size_t>(s.back());
    auto x = random_view(t, s, r, true), dy = random_view(t, s, r, true);
    auto w = random_dense(t, {s.back()}, r);
    bool const weighted = round % 3 != 0;
    tensor_ref const weight = weighted ? w.ref : tensor_ref{};
    auto const xv = values(x), gv = values(dy), wv = weighted ? values(w) : std::vector<double>(n, 1);
    std::vector<double> y, rstds, dx, dweight(n);
    for (std::size_t row = 0; row < xv.size(); row += n) {
      double squares = 0, dot = 0;
      for (std::size_t i = 0; i < n; ++i) squares += xv[row + i] * xv[row + i] / static_cast<double>(n);
      double const q = 1 / std::sqrt(squares + 1e-3);
      rstds.push_back(q);
      for (std::size_t i = 0; i < n; ++i) {
        y.push_back(xv[row + i] * q * wv[i]);
        dweight[i] += gv[row + i] * xv[row + i] * q;
        dot += gv[row + i] * wv[i] * xv[row + i] * q / static_cast<double>(n);
      }
      for (std::size_t i = 0; i < n; ++i) dx.push_back(q * (gv[row + i] * wv[i] - xv[row + i] * q * dot));
    }
    owned ys{t, s}, rstd{stat, rows}, in_place{t, s};
    rms_norm(one, ys, rstd, x, weight, 1e-3);
    assign(in_place, xv);
    rms_norm(many, in_place, {}, in_place, weight, 1e-3);
    CHECK(same_bits(in_place, ys));
    double const within = 10 * tolerance(t);
    CHECK(near(ys, y, within));
    CHECK(near(rstd, rstds, 10 * tolerance(stat)));
    std::vector<std::byte> work(static_cast<std::size_t>(rms_norm_backward_workspace({t, s})));
    owned d{t, s}, dw{t, {s.back()}}, d2{t, s}, dw2{t, {s.back()}};
    rms_norm_backward(one, d, dw, dy, x, rstd, weight, work.data());
    assign(d2, gv);
    rms_norm_backward(many, d2, {}, d2, x, rstd, weight, work.data());
    rms_norm_backward(many, {}, dw2, dy, x, rstd, weight, work.data());
    CHECK(same_bits(d, d2));
    CHECK(same_bits(dw, dw2));
    CHECK(near(d, dx, 3 * within));
    CHECK(near(dw, dweight, 3 * within));
  }
}
