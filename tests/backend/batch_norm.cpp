#include <neap/backend/kernels/batch_norm.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace neap;
using namespace neap_test;

TEST_CASE("batch norm and its gradients agree with the formulas") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 120; ++round) {
    dtype const t = floating_types[round % 4], stat = t == dtype::f64 ? dtype::f64 : dtype::f32;
    std::int64_t const batch = 2 + r.below(9), channels = 1 + r.below(round % 3 == 0 ? 200 : 7);
    shape s{batch, channels};
    if (round % 3 == 1) s = {batch, channels, 7, 1 + static_cast<std::int64_t>(r.below(9))};
    if (round % 3 == 2) s = {batch, channels, 1 + static_cast<std::int64_t>(r.below(90))};
    std::int64_t plane = 1;
    for (int a = 2; a < s.rank(); ++a) plane *= s[a];
    double const n = static_cast<double>(batch * plane);
    shape const c{channels};
    auto x = random_dense(t, s, r), dy = random_dense(t, s, r), w = random_dense(t, c, r), bias = random_dense(t, c, r);
    bool const affine = round % 5 != 0;
    auto running = random_dense(stat, c, r), spread = random_dense(stat, c, r, 0.5, 2);
    auto const xv = values(x), gv = values(dy), rv = values(running), sv = values(spread);
    auto const C = static_cast<std::size_t>(channels), L = static_cast<std::size_t>(plane);
    std::vector<double> const wv = affine ? values(w) : std::vector<double>(C, 1);
    std::vector<double> const bv = affine ? values(bias) : std::vector<double>(C, 0);
    std::vector<double> mean(C), squares(C), rstd(C), y, dx, dw(C), dc(C), new_mean, new_spread, infer;
    auto channel = [&](std::size_t i) { return i / L % C; };
    for (std::size_t i = 0; i < xv.size(); ++i) mean[channel(i)] += xv[i] / n;
    for (std::size_t i = 0; i < xv.size(); ++i) squares[channel(i)] += std::pow(xv[i] - mean[channel(i)], 2);
    for (std::size_t k = 0; k < C; ++k) {
      rstd[k] = 1 / std::sqrt(squares[k] / n + 1e-2);
      new_mean.push_back(0.9 * rv[k] + 0.1 * mean[k]);
      new_spread.push_back(0.9 * sv[k] + 0.1 * squares[k] / (n - 1));
    }
    for (std::size_t i = 0; i < xv.size(); ++i) {
      std::size_t const k = channel(i);
      y.push_back((xv[i] - mean[k]) * rstd[k] * wv[k] + bv[k]);
      infer.push_back((xv[i] - rv[k]) / std::sqrt(sv[k] + 1e-2) * wv[k] + bv[k]);
      dw[k] += gv[i] * (xv[i] - mean[k]) * rstd[k];
      dc[k] += gv[i];
    }
    for (std::size_t i = 0; i < xv.size(); ++i) {
      std::size_t const k = channel(i);
      dx.push_back(rstd[k] * wv[k] * (gv[i] - dc[k] / n - (xv[i] - mean[k]) * rstd[k] * dw[k] / n));
    }
    tensor_ref const weight = affine ? w.ref : tensor_ref{}, shift = affine ? bias.ref : tensor_ref{};
    double const within = 20 * tolerance(t);
    std::vector<std::byte> work(static_cast<std::size_t>(batch_norm_workspace({t, s})));
    owned ys{t, s};
    batch_norm_inference(many, ys, x, running, spread, weight, shift, 1e-2, work.data());
    CHECK(near(ys, infer, within));
    owned m{stat, c}, q{stat, c}, m2{stat, c}, q2{stat, c}, in_place{x};
    batch_norm(one, ys, m, q, x, weight, shift, 1e-2, running, spread, 0.1);
    batch_norm(many, in_place, m2, q2, in_place, weight, shift, 1e-2);
    CHECK(same_bits(in_place, ys));
    CHECK(same_bits(m, m2));
    CHECK(same_bits(q, q2));
    CHECK(near(ys, y, within));
    CHECK(near(m, mean, 10 * tolerance(stat)));
    CHECK(near(q, rstd, 50 * tolerance(stat)));
    CHECK(near(running, new_mean, 10 * tolerance(stat)));
    CHECK(near(spread, new_spread, 10 * tolerance(stat)));
    owned d{t, s}, d2{dy}, dws{t, c}, dcs{t, c}, dws2{t, c};
    batch_norm_backward(one, d, dws, dcs, dy, x, m, q, weight, work.data());
    batch_norm_backward(many, d2, dws2, {}, d2, x, m, q, weight, work.data());
    CHECK(same_bits(d, d2));
    CHECK(same_bits(dws, dws2));
    CHECK(near(d, dx, within));
    CHECK(near(dws, dw, within));
    CHECK(near(dcs, dc, within));
  }
}
