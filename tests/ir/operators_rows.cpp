#include <neap/ir/operators/loss.hpp>
#include <neap/ir/operators/row_norm.hpp>
#include <neap/ir/operators/softmax.hpp>

#include "../support/message.hpp"
#include "../support/operator_check.hpp"

using namespace neap;
using namespace neap::testing;

namespace {
/// The result of a function of rows, row by row.
std::vector<double> by_rows(array const& x, auto const& f) {
  std::vector<double> y;
  std::int64_t const n = x.layout.type.dims.back();
  for (std::int64_t r = 0; n > 0 && r < x.count() / n; ++r) {
    std::vector<double> row;
    for (std::int64_t i = 0; i < n; ++i) row.push_back(x[r * n + i]);
    for (double v : f(row, r)) y.push_back(v);
  }
  return y;
}
double logsumexp(std::vector<double> const& row) {
  double s = 0;
  for (double v : row) s += std::exp(v);
  return std::log(s);
}
/// What cross-entropy keeps of a row.
double log_sum(std::vector<double> const& row) { return logsumexp(row) - *std::max_element(row.begin(), row.end()); }
}  // namespace

TEST_CASE("softmax and its logarithm") {
  random_stream draw(21, 1);
  for (shape dims : {shape{4, 6}, shape{2, 2, 70}, shape{5}, shape{0, 3}, shape{3, 0}, random_shape(draw, 1, 5),
                     random_shape(draw, 2, 5)}) {
    check_operator(op::softmax{}, {{dims}}, [](arrays const& in) {
      return numbers{by_rows(in[0], [](auto row, auto) {
        double const l = logsumexp(row);
        for (auto& v : row) v = std::exp(v - l);
        return row;
      })};
    });
    check_operator(op::log_softmax{}, {{dims}}, [](arrays const& in) {
      return numbers{by_rows(in[0], [](auto row, auto) {
        double const l = logsumexp(row);
        for (auto& v : row) v -= l;
        return row;
      })};
    });
    check_operator(op::softmax_grad{}, {{dims}, {dims, 0, 1}});
    check_operator(op::log_softmax_grad{}, {{dims}, {dims, -3, 0}});
  }
}

TEST_CASE("layer norm and rms norm") {
  auto const norm = [](bool centred, double eps) {
    return [=](arrays const& in) {
      numbers out;
      std::vector<double> means, rstds;
      out.push_back(by_rows(in[0], [&](auto row, auto) {
        double m = 0, v = 0;
        double const n = static_cast<double>(row.size());
        if (centred)
          for (double x : row) m += x / n;
        for (double x : row) v += (x - m) * (x - m) / n;
        double const r = 1 / std::sqrt(v + eps);
        means.push_back(m), rstds.push_back(r);
        for (std::size_t i = 0; i < row.size(); ++i) {
          row[i] = (row[i] - m) * r;
          if (in.size() > 1) row[i] *= in[1][static_cast<std::int64_t>(i)];
          if (in.size() > 2) row[i] += in[2][static_cast<std::int64_t>(i)];
        }
        return row;
      }));
      if (centred) out.push_back(means);
      out.push_back(rstds);
      return out;
    };
  };
  random_stream draw(22, 1);
  for (shape x : {shape{4, 6}, shape{2, 3, 40}, shape{6}, shape{6, 6}, shape{0, 3}, shape{2, 0, 4},
                  random_shape(draw, 2, 5), random_shape(draw, 2, 4)}) {
    std::int64_t const n = x.back();
    shape rows = x;
    rows.erase(rows.rank() - 1);
    check_operator(op::layer_norm{}, {{x}}, norm(true, 1e-5));
    check_operator(op::layer_norm{}, {{x}, {{n}}}, norm(true, 1e-5));
    check_operator(op::layer_norm{1e-3}, {{x}, {{n}}, {{n}}}, norm(true, 1e-3));
    check_operator(op::rms_norm{}, {{x}}, norm(false, 1e-5));
    check_operator(op::rms_norm{1e-3}, {{x}, {{n}}}, norm(false, 1e-3));
    check_operator(op::layer_norm_grad{}, {{x}, {x}, {rows}, {rows, 0.5, 2}, {{n}}});
    check_operator(op::layer_norm_grad{}, {{x}, {x}, {rows}, {rows, 0.5, 2}});
    check_operator(op::rms_norm_grad{}, {{x}, {x}, {rows, 0.5, 2}, {{n}}});
  }
}

TEST_CASE("rows without elements") {  // their mean is a NaN, and their sum of exponentials 0
  for (shape rows : {shape{3}, shape{2, 0}, shape{}}) {
    shape x = rows;
    x.push_back(0);
    check_operator(op::layer_norm{}, {{x}, {{0}}, {{0}}});
    check_operator(op::rms_norm{}, {{x}});
    check_operator(op::layer_norm_grad{}, {{x}, {x}, {rows}, {rows, 0.5, 2}, {{0}}});
    check_operator(op::rms_norm_grad{}, {{x}, {x}, {rows, 0.5, 2}, {{0}}});
    check_operator(op::cross_entropy{-100, true}, {{x}, {rows, -100, -99, dtype::i64}});
    check_operator(op::cross_entropy_grad{-100, true}, {{rows}, {x}, {rows, -100, -99, dtype::i64}, {rows}});
  }
}

TEST_CASE("losses") {
  for (bool per_row : {false, true})
    for (std::int64_t ignored : {-100, 2})
      for (shape rows : {shape{4}, shape{2, 4}, shape{}, shape{2, 0}}) {
        if (rows.rank() == 0 && !per_row && ignored >= 0) continue;  // the mean of no row
        shape logits = rows;
        logits.push_back(6);
        int const cuts =
            check_operator(op::cross_entropy{ignored, per_row}, {{logits, -2, 2}, {rows, 0, 6, dtype::i64}},
                           [&](arrays const& in) {
                             std::vector<double> loss, sums;
                             double sum = 0, count = 0;
                             by_rows(in[0], [&](auto row, auto r) {
                               sums.push_back(log_sum(row));
                               auto const t = static_cast<std::int64_t>(in[1][r]);
                               bool const counts = t != ignored;
                               loss.push_back(counts ? logsumexp(row) - row[static_cast<std::size_t>(t)] : 0);
                               sum += loss.back(), count += counts;
                               return row;
                             });
                             return numbers{per_row ? loss : std::vector{sum / count}, sums};
                           },
                           {.f32_tolerance = 1e-3});
        CHECK((cuts > 0) == (per_row && rows.rank() > 0));
        check_operator(op::cross_entropy_grad{ignored, per_row},
                       {{per_row ? rows : shape{}}, {logits, -2, 2}, {rows, 0, 6, dtype::i64}, {rows, 1, 3}});
      }
  for (shape x : {shape{4, 6}, shape{}, shape{3, 50}, shape{0, 3}}) {
    check_operator(op::mse{}, {{x}, {x}}, [](arrays const& in) {
      double s = 0;
      for (std::int64_t i = 0; i < in[0].count(); ++i) s += (in[0][i] - in[1][i]) * (in[0][i] - in[1][i]);
      return numbers{{s / static_cast<double>(in[0].count())}};
    });
    check_operator(op::mse_grad{}, {{{}}, {x}, {x}});
  }
}

TEST_CASE("smoothed targets") {
  for (bool per_row : {false, true})
    for (double smoothing : {0.1, 0.5, 1.0})
      for (shape rows : {shape{4}, shape{2, 3}}) {
        shape logits = rows;
        logits.push_back(40);
        check_operator(op::cross_entropy{2, per_row, smoothing}, {{logits, -2, 2}, {rows, 0, 40, dtype::i64}},
                       [&](arrays const& in) {
                         std::vector<double> loss, sums;
                         double sum = 0, count = 0;
                         by_rows(in[0], [&](auto row, auto r) {
                           sums.push_back(log_sum(row));
                           auto const t = static_cast<std::size_t>(in[1][r]);
                           double one = 0;
                           for (std::size_t k = 0; k < row.size(); ++k)
                             one -= (row[k] - logsumexp(row)) * (smoothing / 40 + (k == t ? 1 - smoothing : 0));
                           loss.push_back(t == 2 ? 0 : one);
                           sum += loss.back(), count += t != 2;
                           return row;
                         });
                         return numbers{per_row ? loss : std::vector{sum / count}, sums};
                       },
                       {.f32_tolerance = 1e-3});
        check_operator(op::cross_entropy_grad{2, per_row, smoothing},
                       {{per_row ? rows : shape{}}, {logits, -2, 2}, {rows, 0, 40, dtype::i64}, {rows, 1, 3}});
      }
  graph_editor e{operator_table(standard_operators::facets)};
  auto const x = e.add_source(role::input, {dtype::f32, {2, 3}}), t = e.add_source(role::input, {dtype::i64, {2}});
  CHECK(message_of([&] {
          e.add(op::cross_entropy{-100, false, 1.5}, {x, t});
        }) == "cross_entropy: the smoothing must be in [0, 1], got 1.5");
}

TEST_CASE("losses of single elements") {
  auto const each = [](auto const& f) {
    return [f](arrays const& in) {
      std::vector<double> y;
      for (std::int64_t i = 0; i < in[0].count(); ++i) y.push_back(f(in[0][i], in[1][i]));
      return numbers{y};
    };
  };
  for (shape x : {shape{4, 6}, shape{}, shape{3, 50}, shape{0, 3}}) {
    auto const entropy = [](double p, double t) { return -t * std::log(p) - (1 - t) * std::log(1 - p); };
    check_operator(op::binary_cross_entropy{}, {{x, -5, 5}, {x, 0, 1}},
                   each([&](double v, double t) { return entropy(1 / (1 + std::exp(-v)), t); }));
    check_operator(op::binary_cross_entropy{true}, {{x, 0.02, 0.98}, {x, 0, 1}}, each(entropy));
    check_operator(op::binary_cross_entropy_grad{}, {{x}, {x, -5, 5}, {x, 0, 1}});
    check_operator(op::binary_cross_entropy_grad{true}, {{x}, {x, 0.02, 0.98}, {x, 0, 1}});
    for (double delta : {0.3, 1.0, 1e300})
      CHECK(check_operator(op::huber{delta}, {{x}, {x}}, each([&](double a, double b) {
                             double const d = std::abs(a - b);
                             return d <= delta ? d * d / 2 : delta * (d - delta / 2);
                           }),
                           {.f32 = delta < 1e30}) == (x == shape{4, 6}    ? 4
                                                      : x == shape{3, 50} ? 2
                                                                          : 0));
  }
  graph_editor e{operator_table(standard_operators::facets)};
  auto const x = e.add_source(role::input, {dtype::f32, {4, 1}}), t = e.add_source(role::input, {dtype::f32, {4}});
  CHECK(message_of([&] {
          e.add(op::binary_cross_entropy{}, {x, t});
        }) == "binary_cross_entropy: types differ, f32[4,1] and f32[4]");
  CHECK(message_of([&] { e.add(op::huber{}, {x, t}); }) == "huber: types differ, f32[4,1] and f32[4]");
  CHECK(message_of([&] { e.add(op::huber{0}, {x, x}); }) == "huber: delta must be above 0, got 0");
}
