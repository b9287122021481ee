// The operator, its gradient, and their kernels as functors on the block abstraction, of one source for host and GPU.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/core/math.hpp>
#include <neap/cuda/backend.hpp>
#include <neap/ir/operator.hpp>

#include <array>
#include <cstdint>
#include <string_view>

// dx = dy / r - x sum(x dy) / r^3 of each row, where r is its length.
struct unit_rows_grad {
  static constexpr std::string_view name = "unit_rows_grad";
  double epsilon = 1e-6;
  static constexpr auto attributes() { return std::array{neap::field<&unit_rows_grad::epsilon>("epsilon")}; }

  void infer(neap::shape_context& c) const {  // dy, x
    c.require_arity(2, 2);
    c.require(c.in(0) == c.in(1), "needs a gradient of its input's type, got ", c.in(0));
    c.fresh(c.in(1));
  }
  void relate(neap::dim_context& c) const {
    for (int k = 0; k + 1 < c.in(0).rank(); ++k) c.same(0, k, 0, k), c.same(1, k, 0, k);
  }
};

// x (..., n) -> each row divided by its length, sqrt(sum(x^2) + epsilon).
struct unit_rows {
  static constexpr std::string_view name = "unit_rows";
  double epsilon = 1e-6;
  static constexpr auto attributes() { return std::array{neap::field<&unit_rows::epsilon>("epsilon")}; }

  void infer(neap::shape_context& c) const {
    c.require_arity(1, 1);
    c.require(c.in(0).rank() >= 1 && c.in(0).element == neap::dtype::f32, "needs rows of f32, got ", c.in(0));
    c.fresh(c.in(0));
  }
  void relate(neap::dim_context& c) const {
    for (int k = 0; k + 1 < c.in(0).rank(); ++k) c.same(0, k, 0, k);  // rows may be cut apart, a row not
  }
  void gradient(neap::gradient_context& c) const { c.give(0, c.emit(unit_rows_grad{epsilon}, {c.grad(), c.in(0)})); }
};

// A functor does one row, b.id. All threads of a block call it. They meet in b.each and b.reduce_each alone.
struct unit_rows_kernel {
  float const* x;  // (rows, n)
  float* y;
  std::int64_t n;
  float epsilon;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    float const* const from = x + b.id * n;
    float* const to = y + b.id * n;
    float const squares = b.reduce_each(
        n, 0.0f, [=](std::int64_t i) { return from[i] * from[i]; }, neap::sum_op{});
    float const scale = neap::math::rsqrt(squares + epsilon);
    b.each(n, [=](std::int64_t i) { to[i] = from[i] * scale; });
  }
};

struct unit_rows_grad_kernel {
  float const *dy, *x;  // (rows, n)
  float* dx;
  std::int64_t n;
  float epsilon;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    float const *const g = dy + b.id * n, *const from = x + b.id * n;
    float* const to = dx + b.id * n;
    float const squares = b.reduce_each(
        n, 0.0f, [=](std::int64_t i) { return from[i] * from[i]; }, neap::sum_op{});
    float const along = b.reduce_each(
        n, 0.0f, [=](std::int64_t i) { return from[i] * g[i]; }, neap::sum_op{});
    float const scale = neap::math::rsqrt(squares + epsilon);
    float const back = along * scale * scale * scale;
    b.each(n, [=](std::int64_t i) { to[i] = g[i] * scale - from[i] * back; });
  }
};

// Inputs are dense and outputs too. The last argument, the work of a row, decides between a warp and a thread block.
template <class Backend>
void launch(Backend& backend, unit_rows const& op, neap::kernel_arguments const& a) {
  auto const n = a.in[0].extent(-1);
  if (a.in[0].count() == 0) return;
  unit_rows_kernel const kernel{a.in[0].as<float const>(), a.out[0].as<float>(), n, static_cast<float>(op.epsilon)};
  backend.launch(a.in[0].count() / n, kernel, n);
}
template <class Backend>
void launch(Backend& backend, unit_rows_grad const& op, neap::kernel_arguments const& a) {
  auto const n = a.in[0].extent(-1);
  if (a.in[0].count() == 0) return;
  unit_rows_grad_kernel const kernel{a.in[0].as<float const>(), a.in[1].as<float const>(), a.out[0].as<float>(), n,
                                     static_cast<float>(op.epsilon)};
  backend.launch(a.in[0].count() / n, kernel, n);
}

// neap finds the kernels of a backend under this name. Those of a GPU are compiled by nvcc: unit_rows.cu.
inline void run(neap::host_backend& b, unit_rows const& op, neap::kernel_arguments const& a) { launch(b, op, a); }
inline void run(neap::host_backend& b, unit_rows_grad const& op, neap::kernel_arguments const& a) { launch(b, op, a); }
void run(neap::cuda_backend& b, unit_rows const& op, neap::kernel_arguments const& a);
void run(neap::cuda_backend& b, unit_rows_grad const& op, neap::kernel_arguments const& a);
