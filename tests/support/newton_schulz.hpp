// Muon's direction as its authors write it (Jordan et al. 2024), in plain loops over doubles.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap::testing {

/// Rows by columns, row-major.
struct plain_matrix {
  std::int64_t rows, columns;
  std::vector<double> x;

  double& at(std::int64_t i, std::int64_t j) { return x[static_cast<std::size_t>(i * columns + j)]; }
  double at(std::int64_t i, std::int64_t j) const { return x[static_cast<std::size_t>(i * columns + j)]; }

  plain_matrix transposed() const {
    plain_matrix t{columns, rows, std::vector<double>(x.size())};
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) t.at(j, i) = at(i, j);
    return t;
  }
  friend plain_matrix operator*(plain_matrix const& a, plain_matrix const& b) {
    plain_matrix c{a.rows, b.columns, std::vector<double>(static_cast<std::size_t>(a.rows * b.columns))};
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t k = 0; k < a.columns; ++k)
        for (std::int64_t j = 0; j < b.columns; ++j) c.at(i, j) += a.at(i, k) * b.at(k, j);
    return c;
  }
  friend plain_matrix operator+(plain_matrix a, plain_matrix const& b) {
    for (std::size_t i = 0; i < a.x.size(); ++i) a.x[i] += b.x[i];
    return a;
  }
  friend plain_matrix operator*(double s, plain_matrix a) {
    for (auto& v : a.x) v *= s;
    return a;
  }
};

/// What the iteration makes of a matrix: as wide as it is, or on its transpose where it is taller.
inline plain_matrix newton_schulz(plain_matrix x, int iterations = 5) {
  bool const tall = x.rows > x.columns;
  if (tall) x = x.transposed();
  double squares = 0;
  for (double v : x.x) squares += v * v;
  x = 1 / (std::sqrt(squares) + 1e-7) * std::move(x);
  for (int i = 0; i < iterations; ++i) {
    auto const a = x * x.transposed();
    auto const b = -4.7750 * a + 2.0315 * (a * a);
    x = 3.4445 * x + b * x;
  }
  return tall ? x.transposed() : x;
}

/// One weight of two axes or more under Muon: its momentum and what a step makes of it.
struct plain_muon {
  double rate = 0.02, beta = 0.95, decay = 0;
  bool nesterov = true;
  double rms = 0;

  void step(std::vector<double>& w, std::vector<double>& m, std::vector<double> const& g, std::int64_t rows) const {
    auto const n = static_cast<std::int64_t>(w.size()), columns = n / rows;
    plain_matrix u{rows, columns, std::vector<double>(w.size())};
    for (std::size_t i = 0; i < w.size(); ++i) {
      m[i] = beta * m[i] + (1 - beta) * g[i];
      u.x[i] = nesterov ? (1 - beta) * g[i] + beta * m[i] : m[i];
    }
    u = newton_schulz(std::move(u));
    double const r = static_cast<double>(rows), c = static_cast<double>(columns);
    double const scale = rms > 0 ? rms * std::sqrt(r > c ? r : c) : r > c ? std::sqrt(r / c) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) w[i] = (1 - rate * decay) * w[i] - rate * scale * u.x[i];
  }
};

}  // namespace neap::testing
