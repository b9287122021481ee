#include <neap/backend/kernels/cross_entropy.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace neap;
using namespace neap_test;

TEST_CASE("cross-entropy and its gradient agree with the formulas") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 150; ++round) {
    dtype const t = floating_types[round % 4], wide = t == dtype::f64 ? dtype::f64 : dtype::f32;
    auto const how = static_cast<loss_reduction>(round % 3);
    std::int64_t const rows = 1 + r.below(60), classes = 1 + r.below(200);
    auto const n = static_cast<std::size_t>(classes);
    auto x = random_view(t, {rows, classes}, r, true, true, -8, 8);
    owned target{dtype::i64, {rows}};
    double counted = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      bool const ignored = i > 0 && r.below(5) == 0;
      target.ref.as<std::int64_t>()[i] =
          ignored ? -100 : static_cast<std::int64_t>(r.below(static_cast<std::uint32_t>(classes)));
      counted += !ignored;
    }
    bool const each = how == loss_reduction::none;
    auto dloss = random_dense(wide, each ? shape{rows} : shape{}, r);
    auto const xv = values(x), tv = values(target), dl = values(dloss);
    std::vector<double> loss, log_sums, dx;
    double total = 0;
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
      double const top = *std::max_element(&xv[row * n], &xv[row * n] + n);
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) sum += std::exp(xv[row * n + i] - top);
      double const lse = top + std::log(sum);
      log_sums.push_back(std::log(sum));
      bool const ignored = tv[row] == -100;
      loss.push_back(ignored ? 0 : lse - xv[row * n + static_cast<std::size_t>(tv[row])]);
      total += loss.back();
      double const g = dl[each ? row : 0] / (how == loss_reduction::mean ? counted : 1);
      for (std::size_t i = 0; i < n; ++i)
        dx.push_back(ignored ? 0 : g * (std::exp(xv[row * n + i] - lse) - (tv[row] == static_cast<double>(i))));
    }
    if (!each) loss = {how == loss_reduction::mean ? total / counted : total};
    std::vector<std::byte> work(static_cast<std::size_t>(cross_entropy_workspace({t, {rows, classes}})));
    owned l{wide, each ? shape{rows} : shape{}}, log_sum{wide, {rows}};
    cross_entropy_forward(many, l, log_sum, x, target, how, -100, work.data());
    CHECK(near(l, loss, 10 * tolerance(t)));
    CHECK(near(log_sum, log_sums, 10 * tolerance(wide)));
    owned d{t, {rows, classes}}, in_place{t, {rows, classes}};
    cross_entropy_backward(one, d, dloss, x, log_sum, target, how, -100, work.data());
    CHECK(near(d, dx, 10 * tolerance(t)));
    assign(in_place, xv);
    cross_entropy_backward(many, in_place, dloss, in_place, log_sum, target, how, -100, work.data());
    CHECK(same_bits(in_place, d));
  }
  owned x{dtype::f32, {2, 3}}, target{dtype::i64, {2}}, loss{dtype::f32, {2}};
  target.ref.as<std::int64_t>()[1] = 3;
  CHECK_THROWS_WITH_AS(cross_entropy_forward(one, loss, {}, x, target, loss_reduction::none, -100, nullptr),
                       "cross_entropy: target 3 at row 1 is not a class below 3", error);
}

TEST_CASE("mean squared error and its gradient") {
  random_stream r{2};
  host_backend one{1}, many{3};
  for (int round = 0; round < 40; ++round) {
    dtype const t = floating_types[round % 4];
    shape const s = round < 8 ? shape{70001} : random_shape(r);
    auto x = random_dense(t, s, r), y = random_dense(t, s, r), g = random_dense(t, {}, r);
    auto const xv = values(x), yv = values(y);
    auto const how = static_cast<loss_reduction>(round / 4 % 3);
    std::vector<double> each, dx;
    double total = 0;
    for (std::size_t i = 0; i < xv.size(); ++i) {
      each.push_back((xv[i] - yv[i]) * (xv[i] - yv[i]));
      total += each.back();
      dx.push_back(2 * (xv[i] - yv[i]) * values(g)[0] /
                   (how == loss_reduction::mean ? static_cast<double>(xv.size()) : 1));
    }
    if (how != loss_reduction::none)
      each = {how == loss_reduction::mean ? total / static_cast<double>(xv.size()) : total};
    std::vector<std::byte> work(static_cast<std::size_t>(mse_workspace({t, s})));
    shape const ls = how == loss_reduction::none ? s : shape{};
    owned loss{t, ls}, again{t, ls}, d{t, s};
    if (t == dtype::f16 && s.rank() == 1 && how == loss_reduction::sum && total > 60000) continue;
    mse_forward(one, loss, x, y, how, work.data());
    mse_forward(many, again, x, y, how, work.data());
    CHECK(same_bits(loss, again));
    CHECK(near(loss, each, 4 * tolerance(t)));
    mse_backward(one, d, g, x, y, how);
    CHECK(near(d, dx, 4 * tolerance(t)));
    mse_backward(many, x, g, x, y, how);
    CHECK(same_bits(d, x));
  }
}
