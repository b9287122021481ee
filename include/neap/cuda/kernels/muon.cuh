// Muon's update on a device (backend/kernels/muon.hpp has the formulas): maps and products of matrices, whose numbers the
// device reads. Where a step does not count, weight and momentum stay; the products are made all the same.
#pragma once

#include <neap/backend/kernels/muon.hpp>
#include <neap/cuda/kernels/copy.cuh>
#include <neap/cuda/kernels/elementwise.cuh>
#include <neap/cuda/kernels/matmul.hpp>
#include <neap/cuda/kernels/update.cuh>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

/// beta m + (1 - beta) g.
struct muon_mean {
  double beta;
  template <class C>
  NEAP_HD C operator()(C m, C g) const {
    return static_cast<C>(1 - beta) * g + static_cast<C>(beta) * m;
  }
};

// In the order of the settings: rate, beta, decay.
struct device_muon_momentum {
  device_numbers<3> numbers;
  NEAP_HD bool counts() const { return numbers.count(); }
  NEAP_HD muon_mean prepared() const { return {numbers[1]}; }
};
/// What is made orthogonal in Nesterov's form, from the new momentum.
struct device_muon_ahead {
  device_numbers<3> numbers;
  NEAP_HD bool counts() const { return true; }
  NEAP_HD muon_mean prepared() const { return {numbers[1]}; }
};
struct device_muon_step {
  device_numbers<3> numbers;
  double scale;
  NEAP_HD bool counts() const { return numbers.count(); }
  NEAP_HD muon_step prepared() const { return {1 - numbers[0] * numbers[2], numbers[0] * scale}; }
};
/// Over the length of which this is the square.
struct device_over_length {
  double const* square;
  NEAP_HD bool counts() const { return true; }
  NEAP_HD times_number prepared() const { return {1 / (math::sqrt(*square) + 1e-7)}; }
};
struct plus_number {
  double number;
  template <class C>
  NEAP_HD C operator()(C x) const {
    return x + static_cast<C>(number);
  }
};

inline bytes_t muon_device_scratch(muon_shape const& s, dtype element) {
  bytes_t most = 0;
  for (gemm_shape const& p : {s.gram(), s.square(), s.product()})
    most = std::max(most, cuda_gemm_scratch(cuda_gemm_tiling::of(p.m, p.n, p.k, 1), p.m, p.n, 1, element));
  return most;
}

/// X in the workspace made nearly orthogonal, as muon_orthogonalise of the host; the place where it is then.
template <class B>
std::byte* orthogonalise_on_device(B& b, muon_shape const& s, dtype element, std::int64_t iterations,
                                   std::byte* workspace) {
  muon_places const at(s, element);
  auto const line = [&](std::byte* data, std::int64_t n) { return tensor_ref{data, element, {n}, {1}}; };
  auto const product = [&](gemm_shape const& shape, std::byte const* left, std::byte const* right, std::byte* y) {
    matmul_plan p;
    p.each = shape;
    make_product(b, p, cuda_gemm_tiling::of(shape.m, shape.n, shape.k, 1), element, left, right, y, false);
  };
  std::byte *x = workspace + at.x,
            *y = workspace + at.other, *const gram = workspace + at.gram, *const square = workspace + at.square;
  tensor_ref const total{workspace + at.total, dtype::f64, {}, {}};
  fill(b, total, 0);
  add_sum_of_squares(b, total, line(x, s.count()), workspace + at.rest);
  map(b, device_over_length{total.as<double const>()}, line(x, s.count()), line(x, s.count()));
  auto const n = s.side();
  bool const wide = s.rows <= s.columns;
  tensor_ref const diagonal{square, element, {n}, {n + 1}};
  for (std::int64_t i = 0; i < iterations; ++i) {
    product(s.gram(), x, x, gram);
    product(s.square(), gram, gram, square);
    map(b, muon_polynomial{}, line(square, n * n), line(gram, n * n), line(square, n * n));
    map(b, plus_number{3.4445}, diagonal, diagonal);
    product(s.product(), wide ? square : x, wide ? x : square, y);
    std::swap(x, y);
  }
  return x;
}

}  // namespace detail

namespace op {

inline bytes_t device_scratch(muon const&, work_context const& c) {
  return neap::detail::muon_device_scratch(neap::detail::muon_shape(c.in[0].type.dims), c.in[2].type.element);
}
template <device_backend B>
void run(B& b, muon const& op, kernel_arguments const& a) {
  namespace nd = neap::detail;
  tensor_ref const &weight = a.in[0], &gradient = a.in[1], &momentum = a.in[2];
  nd::muon_shape const s(weight.dims);
  if (s.count() == 0) return;
  nd::device_numbers<3> const numbers{
      {op.rate, op.beta, op.weight_decay}, detail::settings(a, 3), detail::verdict(a, 3, 3)};
  auto* const work = static_cast<std::byte*>(a.workspace);
  tensor_ref x{work, momentum.element, weight.dims, dense_strides(weight.dims)};
  map(b, nd::device_muon_momentum{numbers}, momentum, momentum, gradient);
  if (op.nesterov) map(b, nd::device_muon_ahead{numbers}, x, momentum, gradient);
  else neap::copy(b, x, momentum);
  x.data = nd::orthogonalise_on_device(b, s, momentum.element, op.iterations, work);
  double const rows = static_cast<double>(s.rows), columns = static_cast<double>(s.columns);
  double const scale =
      op.rms > 0 ? op.rms * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  map(b, nd::device_muon_step{numbers, scale}, weight, weight, x);
}

}  // namespace op

}}  // namespace neap::v0
