#include <neap/backend/kernels/group_norm.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace neap;
using namespace neap_test;

TEST_CASE("group norm and its gradients agree with the formulas") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 80; ++round) {
    dtype const t = floating_types[round % 4], stat = t == dtype::f64 ? dtype::f64 : dtype::f32;
    std::int64_t const groups = 1 + r.below(4), width = 1 + r.below(5), batch = 1 + r.below(5);
    shape s{batch, groups * width, 2 + static_cast<std::int64_t>(r.below(9))};
    if (round % 3) s.push_back(1 + r.below(9));
    std::int64_t plane = 1;
    for (int a = 2; a < s.rank(); ++a) plane *= s[a];
    shape const c{groups * width}, gs{batch, groups};
    auto x = random_dense(t, s, r), dy = random_dense(t, s, r), w = random_dense(t, c, r), bias = random_dense(t, c, r);
    bool const affine = round % 5 != 0;
    auto const xv = values(x), gv = values(dy);
    auto const C = static_cast<std::size_t>(groups * width), L = static_cast<std::size_t>(plane);
    std::size_t const length = L * static_cast<std::size_t>(width);
    std::vector<double> const wv = affine ? values(w) : std::vector<double>(C, 1);
    std::vector<double> const bv = affine ? values(bias) : std::vector<double>(C, 0);
    std::vector<double> means, rstds, y, dx, dw(C), dc(C);
    double const n = static_cast<double>(length);
    for (std::size_t at = 0; at < xv.size(); at += length) {
      double mean = 0, squares = 0, a = 0, h = 0;
      for (std::size_t i = at; i < at + length; ++i) mean += xv[i] / n;
      for (std::size_t i = at; i < at + length; ++i) squares += std::pow(xv[i] - mean, 2) / n;
      double const q = 1 / std::sqrt(squares + 1e-2);
      means.push_back(mean), rstds.push_back(q);
      for (std::size_t i = at; i < at + length; ++i) {
        std::size_t const k = i / L % C;
        double const normal = (xv[i] - mean) * q;
        y.push_back(normal * wv[k] + bv[k]);
        dw[k] += gv[i] * normal;
        dc[k] += gv[i];
        a += gv[i] * wv[k] / n;
        h += gv[i] * wv[k] * normal / n;
      }
      for (std::size_t i = at; i < at + length; ++i)
        dx.push_back(q * (gv[i] * wv[i / L % C] - a - (xv[i] - mean) * q * h));
    }
    tensor_ref const weight = affine ? w.ref : tensor_ref{}, shift = affine ? bias.ref : tensor_ref{};
    double const within = 20 * tolerance(t);
    owned ys{t, s}, m{stat, gs}, q{stat, gs}, in_place{x};
    group_norm(one, ys, m, q, x, weight, shift, groups, 1e-2);
    group_norm(many, in_place, {}, {}, in_place, weight, shift, groups, 1e-2);
    CHECK(same_bits(in_place, ys));
    CHECK(near(ys, y, within));
    CHECK(near(m, means, 10 * tolerance(stat)));
    CHECK(near(q, rstds, 50 * tolerance(stat)));
    std::vector<std::byte> work(static_cast<std::size_t>(group_norm_backward_workspace({t, s})));
    owned d{t, s}, d2{dy}, dws{t, c}, dcs{t, c}, dws2{t, c};
    group_norm_backward(one, d, dws, dcs, dy, x, m, q, weight, groups, work.data());
    group_norm_backward(many, d2, dws2, {}, d2, x, m, q, weight, groups, work.data());
    CHECK(same_bits(d, d2));
    CHECK(same_bits(dws, dws2));
    CHECK(near(d, dx, within));
    CHECK(near(dws, dw, within));
    CHECK(near(dcs, dc, within));
  }
  owned x{dtype::f32, {2, 6, 4}};
  CHECK_THROWS_AS(group_norm(one, x, {}, {}, x, {}, {}, 4, 1e-5), error);
}
