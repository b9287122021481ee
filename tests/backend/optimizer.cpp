#include <neap/backend/kernels/optimizer.hpp>

#include <neap/backend/kernels/adafactor.hpp>
#include <neap/backend/kernels/muon.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace neap;
using namespace neap_test;

TEST_CASE("updates agree with the formulas over several steps") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 24; ++round) {
    dtype const t = floating_types[round % 2], state = t;
    shape const s = round < 6 ? shape{30001} : shape{7, 33};
    int const kind = round / 2 % 6;
    auto p = random_dense(t, s, r);
    owned m{state, s}, v{state, s}, p2{p}, m2{state, s}, v2{state, s};
    std::vector<double> pv = values(p), mv(pv.size()), vv(pv.size());
    for (std::int64_t step = 1; step <= 4; ++step) {
      auto g = random_dense(t, s, r);
      auto const gv = values(g);
      adam_options const o{0.01, 0.9, 0.99, 1e-6, 0.1};
      auto run = [&](host_backend& b, owned& q, owned& first, owned& second) {
        if (kind == 0) sgd_update(b, q, g, 0.1, 0.01);
        if (kind == 1) momentum_update(b, q, first, g, 0.1, 0.9, false, 0.01, 0.2);
        if (kind == 2) momentum_update(b, q, first, g, 0.1, 0.9, true, 0.01);
        if (kind == 3) adam_update(b, q, first, second, g, step, o);
        if (kind == 4) adamw_update(b, q, first, second, g, step, o);
        if (kind == 5) sgd_update(b, q, g, 0.1);
      };
      run(one, p, m, v);
      run(many, p2, m2, v2);
      for (std::size_t i = 0; i < pv.size(); ++i) {
        double d = gv[i] + (kind < 3 ? 0.01 : kind == 3 ? 0.1 : 0) * pv[i];
        if (kind == 0 || kind == 5) pv[i] -= 0.1 * d;
        if (kind == 1) mv[i] = 0.9 * mv[i] + 0.8 * d, pv[i] -= 0.1 * mv[i];
        if (kind == 2) mv[i] = 0.9 * mv[i] + d, pv[i] -= 0.1 * (d + 0.9 * mv[i]);
        if (kind == 3 || kind == 4) {
          if (kind == 4) pv[i] *= 1 - 0.01 * 0.1;
          mv[i] = 0.9 * mv[i] + 0.1 * d;
          vv[i] = 0.99 * vv[i] + 0.01 * d * d;
          double const mh = mv[i] / (1 - std::pow(0.9, step)), vh = vv[i] / (1 - std::pow(0.99, step));
          pv[i] -= 0.01 * mh / (std::sqrt(vh) + 1e-6);
        }
      }
    }
    CHECK(near(p, pv, 4 * tolerance(t)));
    CHECK(near(m, mv, 4 * tolerance(t)));
    CHECK(near(v, vv, 4 * tolerance(t)));
    CHECK(same_bits(p, p2));
    CHECK(same_bits(m, m2));
    CHECK(same_bits(v, v2));
  }
  owned p{dtype::f32, {3}};
  CHECK_THROWS_AS(adam_update(one, p, p, p, p, 0, {}), error);
}

TEST_CASE("bf16 parameters with f32 states") {
  random_stream r{2};
  host_backend b{2};
  auto p = random_dense(dtype::bf16, {1000}, r), g = random_dense(dtype::bf16, {1000}, r);
  owned m{dtype::f32, {1000}}, v{dtype::f32, {1000}};
  auto const pv = values(p), gv = values(g);
  adamw_update(b, p, m, v, g, 1, {0.1, 0.9, 0.999, 1e-8, 0});
  for (std::size_t i = 0; i < 1000; ++i) {
    CHECK(values(m)[i] == doctest::Approx(0.1 * gv[i]).epsilon(1e-6));
    CHECK(std::fabs(values(p)[i] - (pv[i] - (gv[i] > 0) * 0.1 + (gv[i] < 0) * 0.1)) < 0.02);
    if (i > 20) break;
  }
}

TEST_CASE("gradients are clipped by their global norm") {
  random_stream r{3};
  host_backend one{1}, many{3};
  auto a = random_dense(dtype::f32, {40, 1000}, r), b = random_dense(dtype::f32, {77}, r);
  owned total{dtype::f64, {}}, again{dtype::f64, {}}, scale{dtype::f32, {}};
  std::vector<std::byte> work(static_cast<std::size_t>(add_sum_of_squares_workspace({dtype::f32, {40, 1000}})));
  double exact = 0;
  for (auto* x : {&a, &b}) {
    add_sum_of_squares(one, total, *x, work.data());
    add_sum_of_squares(many, again, *x, work.data());
    for (double v : values(*x)) exact += v * v;
  }
  CHECK(same_bits(total, again));
  CHECK(values(total)[0] == doctest::Approx(exact).epsilon(1e-6));
  clip_scale(one, scale, total, 1.0);
  CHECK(values(scale)[0] == doctest::Approx(1 / (std::sqrt(exact) + 1e-6)).epsilon(1e-6));
  clip_scale(one, scale, total, 1e9);
  CHECK(values(scale)[0] == 1);
}

TEST_CASE("adafactor has the same bits on any number of threads, and stays in its workspace") {
  random_stream r{5};
  host_backend one{1}, many{3};
  for (shape const& s : {shape{130, 300}, shape{3000, 7}, shape{2, 9000}, shape{5000}, shape{40, 3, 20}, shape{}})
    for (dtype t : floating_types) {
      detail::weight_matrix const m(s);
      dtype const state = t == dtype::f64 ? dtype::f64 : dtype::f32;
      auto w = random_dense(t, s, r), g = random_dense(t, s, r);
      owned column{state, {m.columns}}, row{state, {m.rows}};
      owned w2{w}, column2{column}, row2{row};
      auto const bytes = static_cast<std::size_t>(adafactor_workspace({t, s}));
      std::vector<double> work(bytes / 8 + 8, 7);
      for (int step = 1; step < 4; ++step) {
        auto const rows = [&](owned& x) { return s.rank() < 2 ? tensor_ref{} : tensor_ref(x); };
        adafactor_update(one, w, g, column, rows(row), step, {}, work.data());
        for (std::size_t i = (bytes + 7) / 8; i < work.size(); ++i) CHECK(work[i] == 7);
        adafactor_update(many, w2, g, column2, rows(row2), step, {}, work.data());
      }
      CHECK(same_bits(w, w2));
      CHECK(same_bits(column, column2));
      CHECK(same_bits(row, row2));
    }
}

TEST_CASE("adafactor moves nothing where the gradient is zero, and what is not finite stays so") {
  host_backend b{1};
  owned w{dtype::f32, {4, 5}}, g{dtype::f32, {4, 5}}, column{dtype::f32, {5}}, row{dtype::f32, {4}};
  std::vector<std::byte> work(static_cast<std::size_t>(adafactor_workspace({dtype::f32, {4, 5}})));
  adafactor_update(b, w, g, column, row, 1, {}, work.data());
  for (double x : values(w)) CHECK(x == 0);
  static_cast<float*>(tensor_ref(g).data)[7] = std::nanf("");
  adafactor_update(b, w, g, column, row, 2, {}, work.data());
  CHECK(std::isnan(values(w)[7]));
  CHECK_THROWS_AS(adafactor_update(b, w, g, column, row, 0, {}, work.data()), error);
}

TEST_CASE("muon has the same bits on any number of threads, and stays in its workspace") {
  random_stream r{4};
  host_backend one{1}, many{3};
  for (shape const& s : {shape{130, 300}, shape{300, 70}, shape{2, 9000}})
    for (dtype t : floating_types) {
      if (size_of(t) < 4) continue;
      auto w = random_dense(t, s, r), m = random_dense(t, s, r), g = random_dense(t, s, r);
      owned w2{w}, m2{m};
      auto const bytes = static_cast<std::size_t>(muon_workspace({t, s}));
      std::vector<double> work(bytes / 8 + 8, 7);
      muon_update(one, w, m, g, {}, work.data());
      for (std::size_t i = (bytes + 7) / 8; i < work.size(); ++i) CHECK(work[i] == 7);
      muon_update(many, w2, m2, g, {}, work.data());
      CHECK(same_bits(w, w2));
      CHECK(same_bits(m, m2));
    }
}
