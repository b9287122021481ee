// Muon's update of a matrix weight on the host (Jordan et al. 2024): the momentum of its gradients is made nearly
// orthogonal, all its singular values brought near 1, and the weight takes a step along that. What makes it so is a
// Newton-Schulz iteration, products of matrices alone:
//
//   X = M / |M|,  then, five times:  X = a X + b (X X^T) X + c (X X^T)^2 X,   a, b, c = 3.4445, -4.7750, 2.0315
//
// whose coefficients are steep at 0 and leave singular values between 0.7 and 1.2, which is as good for training. The
// products of X with itself are taken over its shorter side, so that a step costs least.
#pragma once

#include <neap/backend/gemm.hpp>
#include <neap/backend/kernels/optimizer.hpp>
#include <neap/core/units.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

struct muon_options {
  double rate = 2e-2, beta = 0.95, decay = 0;
  bool nesterov = true;
  std::int64_t iterations = 5;
  double rms =
      0;  // above 0: of the step's elements, for a rate of 1; 0: steps longer by sqrt(rows / columns) where tall
};

namespace detail {

/// What is multiplied.
struct muon_shape : weight_matrix {
  using weight_matrix::weight_matrix;
  std::int64_t side() const { return std::min(rows, columns); }
  /// X times itself over the longer side; the square of that; a square times X, or X times it.
  gemm_shape gram() const {
    bool const wide = rows <= columns;
    return gemm_shape::dense(side(), side(), wide ? columns : rows, !wide, wide);
  }
  gemm_shape square() const { return gemm_shape::dense(side(), side(), side()); }
  gemm_shape product() const { return gemm_shape::dense(rows, columns, side()); }
  bytes_t gemm_bytes(dtype t) const {
    return std::max({gemm_workspace(gram(), t), gemm_workspace(square(), t), gemm_workspace(product(), t)});
  }
};

struct muon_blend {
  double beta;
  bool nesterov;
  template <class C>
  NEAP_HD std::array<C, 2> operator()(C m, C g) const {
    C const fresh = static_cast<C>(1 - beta) * g, next = static_cast<C>(beta) * m + fresh;
    return {next, pick(nesterov, fresh + static_cast<C>(beta) * next, next)};
  }
};
struct muon_step {
  double keep, step;
  template <class C>
  NEAP_HD C operator()(C w, C x) const {
    return static_cast<C>(keep) * w - static_cast<C>(step) * x;
  }
};
struct times_number {
  double factor;
  template <class C>
  NEAP_HD C operator()(C x) const {
    return static_cast<C>(factor) * x;
  }
};
/// b A + c A A, from A and A A.
struct muon_polynomial {
  template <class C>
  NEAP_HD C operator()(C a, C square) const {
    return C(-4.7750) * a + C(2.0315) * square;
  }
};

/// Where what an update needs lies in its workspace, in bytes; T's size is `element`'s.
struct muon_places {
  bytes_t x, other, gram, square, total, rest, end;
  muon_places(muon_shape const& s, dtype element) {
    auto const matrix = align_up(s.count() * size_of(element), 64);
    auto const small = align_up(s.side() * s.side() * size_of(element), 64);
    x = 0, other = matrix, gram = other + matrix, square = gram + small, total = square + small, rest = total + 64;
    end = rest + std::max(s.gemm_bytes(element), add_sum_of_squares_workspace({element, {s.count()}}));
  }
};

template <class T>
void muon_orthogonalise(host_backend& b, muon_shape const& s, std::int64_t iterations, std::byte* workspace) {
  muon_places const at(s, dtype_of<T>);
  auto const place = [&](bytes_t offset) { return reinterpret_cast<T*>(workspace + offset); };
  auto const matrix = [](T* data, std::int64_t n) { return tensor_ref{data, dtype_of<T>, {n}, {1}}; };
  auto* const rest = workspace + at.rest;
  T *x = place(at.x), *y = place(at.other), *const gram = place(at.gram), *const square = place(at.square);
  auto* const total = reinterpret_cast<double*>(workspace + at.total);
  *total = 0;
  add_sum_of_squares(b, {total, dtype::f64, {}, {}}, matrix(x, s.count()), rest);
  map(b, times_number{1 / (std::sqrt(*total) + 1e-7)}, matrix(x, s.count()), matrix(x, s.count()));
  auto const n = s.side();
  bool const wide = s.rows <= s.columns;
  for (std::int64_t i = 0; i < iterations; ++i) {
    gemm(b, s.gram(), T(1), x, x, T(0), gram, rest);
    gemm(b, s.square(), T(1), gram, gram, T(0), square, rest);
    map(b, muon_polynomial{}, matrix(square, n * n), matrix(gram, n * n), matrix(square, n * n));
    for (std::int64_t k = 0; k < n; ++k) square[k * n + k] += T(3.4445);
    gemm(b, s.product(), T(1), wide ? square : x, wide ? x : square, T(0), y, rest);
    std::swap(x, y);
  }
  if (x != place(at.x)) std::copy(x, x + s.count(), place(at.x));
}

}  // namespace detail

/// Bytes of workspace of muon_update for a weight whose momentum is of this type.
inline bytes_t muon_workspace(tensor_type const& momentum) {
  detail::muon_shape const s(momentum.dims);
  return s.count() == 0 ? 0 : detail::muon_places(s, momentum.element).end;
}

/// momentum = beta * momentum + (1 - beta) * gradient; X is that, or in Nesterov's form (1 - beta) * gradient + beta *
/// momentum, made nearly orthogonal as above; weight -= rate * (scale * X + decay * weight). The scale is sqrt(max(1, rows
/// / columns)); with `rms` it is rms * sqrt(max(rows, columns)), for steps of AdamW's length (Liu et al. 2025). The weight
/// has two axes or more, the momentum is f32 or f64 and starts from 0.
template <std::same_as<host_backend> Backend>
void muon_update(Backend& b, tensor_ref const& weight, tensor_ref const& momentum, tensor_ref const& gradient,
                 muon_options const& o, void* workspace) {
  detail::muon_shape const s(weight.dims);
  if (s.count() == 0) return;
  auto* const work = static_cast<std::byte*>(workspace);
  tensor_ref const x{work, momentum.element, weight.dims, dense_strides(weight.dims)};
  map(b, detail::muon_blend{o.beta, o.nesterov}, std::array<tensor_ref, 2>{momentum, x}, momentum, gradient);
  if (momentum.element == dtype::f64) detail::muon_orthogonalise<double>(b, s, o.iterations, work);
  else detail::muon_orthogonalise<float>(b, s, o.iterations, work);
  double const rows = static_cast<double>(s.rows), columns = static_cast<double>(s.columns);
  double const scale =
      o.rms > 0 ? o.rms * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  map(b, detail::muon_step{1 - o.rate * o.decay, o.rate * scale}, weight, weight, x);
}

}}  // namespace neap::v0
