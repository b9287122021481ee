// Batched matrix multiplication of strided views on the host: y[..., m, n] = op(a) op(b) (+ y). Batch axes broadcast
// (extent 1 or stride 0); they are folded into m where the strides allow, so that x[B, T, C] W[C, D] is one product.
#pragma once

#include <neap/backend/gemm_low.hpp>
#include <neap/core/element.hpp>
#include <neap/core/tensor_ref.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <source_location>
#include <string>

namespace neap { inline namespace v0 {

struct matmul_options {
  bool transpose_a = false;  // a is [..., k, m]
  bool transpose_b = false;  // b is [..., n, k]
  bool accumulate = false;   // y += instead of y =
};

namespace detail {

// One operand's last two axes as BLAS wants them: rows of consecutive elements, or the transpose of that.
struct matrix_view {
  bool transposed = false;  // the stored matrix is the transpose
  std::int64_t ld = 0;
};

inline matrix_view view_matrix(char const* who, tensor_ref const& t) {
  std::int64_t const rows = t.extent(-2), columns = t.extent(-1);
  std::int64_t const row = t.strides[t.rank() - 2], column = t.strides[t.rank() - 1];
  if (columns <= 1 || column == 1) {
    if (rows <= 1) return {false, std::max<std::int64_t>(columns, 1)};
    if (columns <= 1 && row == 1) return {true, rows};
    if (row >= columns) return {false, row};
  }
  if (rows <= 1 || row == 1) {
    if (columns <= 1) return {true, std::max<std::int64_t>(rows, 1)};
    if (column >= rows) return {true, column};
  }
  throw_error({"matmul: ", who, " ", t.dims, " with strides ", t.strides,
               " has no axis of stride 1 among its last two, copy it first"});
}

// A product with its batch axes folded as far as they go.
struct matmul_plan {
  gemm_shape each;
  int batch_rank = 0;
  std::int64_t batch[max_rank]{}, stride_a[max_rank]{}, stride_b[max_rank]{}, stride_y[max_rank]{};
  std::int64_t batches = 1;

  static matmul_plan of(tensor_ref const& a, tensor_ref const& b, tensor_ref const& y, matmul_options const& o) {
    if (a.rank() < 2 || b.rank() < 2 || y.rank() < 2)
      throw_error({"matmul: operands need two axes or more, have ", a.dims, " x ", b.dims});
    matmul_plan p;
    std::int64_t const m = a.extent(o.transpose_a ? -1 : -2), k = a.extent(o.transpose_a ? -2 : -1);
    std::int64_t const kb = b.extent(o.transpose_b ? -1 : -2), n = b.extent(o.transpose_b ? -2 : -1);
    if (k != kb) throw_error({"matmul: inner extents differ, ", a.dims, " x ", b.dims});
    if (y.extent(-2) != m || y.extent(-1) != n)
      throw_error({"matmul: the result of ", a.dims, " x ", b.dims, " does not fit ", y.dims});
    auto const va = view_matrix("the left operand", a), vb = view_matrix("the right operand", b),
               vy = view_matrix("the result", y);
    if (vy.transposed && m > 1 && n > 1) throw_error({"matmul: the rows of the result must be dense"});
    p.each = {m, n, k, va.transposed != o.transpose_a, vb.transposed != o.transpose_b, va.ld, vb.ld, vy.ld};
    if (m > 1) p.each.ldc = y.strides[y.rank() - 2];

    int const rank = y.rank() - 2;
    auto stride_at = [&](tensor_ref const& t, int axis) -> std::int64_t {  // axis of y's batch; leading ones may lack
      int const i = axis - (rank - (t.rank() - 2));
      if (i < 0) return 0;
      if (t.dims[i] != 1 && t.dims[i] != y.dims[axis])
        throw_error({"matmul: batch extents ", t.dims, " do not broadcast to ", y.dims});
      return t.dims[i] == 1 ? 0 : t.strides[i];
    };
    if (a.rank() > y.rank() || b.rank() > y.rank())
      throw_error({"matmul: the result ", y.dims, " lacks batch axes of its operands"});
    for (int i = 0; i < rank; ++i) {
      if (y.dims[i] == 1) continue;
      std::int64_t const extent = y.dims[i], sa = stride_at(a, i), sb = stride_at(b, i), sy = y.strides[i];
      p.batches *= extent;
      int const last = p.batch_rank - 1;
      if (last >= 0 && p.stride_a[last] == sa * extent && p.stride_b[last] == sb * extent &&
          p.stride_y[last] == sy * extent) {
        p.batch[last] *= extent;
        p.stride_a[last] = sa, p.stride_b[last] = sb, p.stride_y[last] = sy;
        continue;
      }
      p.batch[p.batch_rank] = extent;
      p.stride_a[p.batch_rank] = sa, p.stride_b[p.batch_rank] = sb, p.stride_y[p.batch_rank] = sy;
      ++p.batch_rank;
    }
    p.fold(a.strides[a.rank() - (o.transpose_a ? 1 : 2)]);
    return p;
  }

  NEAP_HD std::int64_t offset(std::int64_t const* strides, std::int64_t index) const {
    std::int64_t at = 0;
    for (int i = batch_rank - 1; i >= 0; --i) {
      at += index % batch[i] * strides[i];
      index /= batch[i];
    }
    return at;
  }

 private:
  // Batch axes that share b become rows: a's and y's next matrix must follow at the distance of the next row.
  void fold(std::int64_t a_row) {
    while (batch_rank > 0 && batches > 0) {
      int const i = batch_rank - 1;
      bool const rows_of_a = !each.transpose_a;
      if (stride_b[i] != 0 || !rows_of_a) return;
      std::int64_t const m = each.m;
      std::int64_t const step_a = m > 1 ? a_row : stride_a[i], step_y = m > 1 ? each.ldc : stride_y[i];
      if (stride_a[i] != m * step_a || stride_y[i] != m * step_y) return;
      if (step_a < each.k || step_y < each.n) return;
      a_row = each.lda = step_a;
      each.ldc = step_y;
      each.m = m * batch[i];
      batches /= batch[i];
      --batch_rank;
    }
  }
};

template <class T>
void run_matmul(host_backend& backend, matmul_plan const& p, tensor_ref const& a, tensor_ref const& b,
                tensor_ref const& y, bool accumulate, void* workspace) {
  T const beta = accumulate ? T(1) : T(0);
  auto const* pa = a.as<T const>();
  auto const* pb = b.as<T const>();
  auto* py = y.as<T>();
  check_gemm(p.each);
  single_threaded_blas();
  double const work = double(p.each.m) * double(p.each.n) * double(p.each.k);
  auto product = [&](std::int64_t i) {
    T const* const a_i = pa + p.offset(p.stride_a, i);
    T const* const b_i = pb + p.offset(p.stride_b, i);
    T* const y_i = py + p.offset(p.stride_y, i);
#if defined(NEAP_GEMM_AMX)
    // OpenBLAS is as quick where products are smaller.
    if constexpr (std::is_same_v<T, float>)
      if (work >= 1 << 18 && suits_units(p.each))
        return gemm_amx::run(p.each.m, p.each.n, p.each.k, {a_i, p.each.lda, p.each.transpose_a},
                             {b_i, p.each.ldb, p.each.transpose_b}, accumulate, y_i, p.each.ldc);
#endif
    gemm_panel(p.each, T(1), a_i, b_i, beta, y_i);
  };
  // Few large products: each is cut. Many: one a thread at a time. The shape decides.
  if (p.batches < 8 && work >= double(gemm_panels::worth_cutting)) {
    for (std::int64_t i = 0; i < p.batches; ++i)
      gemm_cut(backend, p.each, gemm_panels::of(p.each), p.each, T(1), pa + p.offset(p.stride_a, i),
               pb + p.offset(p.stride_b, i), beta, py + p.offset(p.stride_y, i), workspace);
    return;
  }
  if (double(p.batches) * work < 100000) {
    for (std::int64_t i = 0; i < p.batches; ++i) product(i);
    return;
  }
  auto const grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(32768 / std::max(work, 1.0)));
  backend.parallel_for(p.batches, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) product(i);
  });
}

template <class T>
void run_low_matmul(host_backend& backend, matmul_plan const& p, tensor_ref const& a, tensor_ref const& b,
                    tensor_ref const& y, bool accumulate) {
  check_gemm(p.each);
  single_threaded_blas();
  low_product<T> const product(p.each, accumulate);
  std::int64_t const pieces = product.pieces.count();
  double const work = double(p.each.m) * double(p.each.n) * double(p.each.k) / double(pieces);
  auto const grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(32768 / std::max(work, 1.0)));
  backend.parallel_for(p.batches * pieces, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      std::int64_t const i = t / pieces;
      product.run(t % pieces, a.as<T const>() + p.offset(p.stride_a, i), b.as<T const>() + p.offset(p.stride_b, i),
                  y.as<T>() + p.offset(p.stride_y, i));
    }
  });
}

}  // namespace detail

/// Bytes of workspace for matmul of these operands.
inline bytes_t matmul_workspace(tensor_ref const& a, tensor_ref const& b, tensor_ref const& y, matmul_options o = {}) {
  if (is_low(y.element)) return 0;
  auto const p = detail::matmul_plan::of(a, b, y, o);
  return p.batches < 8 ? gemm_workspace(p.each, y.element) : 0;
}

/// y[..., m, n] = op(a) op(b), of one floating type (bf16 and f16: gemm_low.hpp). The last two axes of a and b need one of stride 1, y's rows must be dense;
/// broadcast batch axes have extent 1 or stride 0, or are missing in front. y must not overlap the operands. Throws
/// neap::error where that does not hold (the caller copies first).
template <std::same_as<host_backend> Backend>
void matmul(Backend& backend, tensor_ref const& a, tensor_ref const& b, tensor_ref const& y, matmul_options o = {},
            void* workspace = nullptr) {
  if (a.element != y.element || b.element != y.element)
    throw_error(
        {"matmul: element types differ, ", name_of(a.element), " x ", name_of(b.element), " -> ", name_of(y.element)});
  auto const p = detail::matmul_plan::of(a, b, y, o);
  if (p.batches == 0 || p.each.m == 0 || p.each.n == 0) return;
  if (y.element == dtype::f32) detail::run_matmul<float>(backend, p, a, b, y, o.accumulate, workspace);
  else if (y.element == dtype::f64) detail::run_matmul<double>(backend, p, a, b, y, o.accumulate, workspace);
  else if (y.element == dtype::bf16) detail::run_low_matmul<bf16>(backend, p, a, b, y, o.accumulate);
  else if (y.element == dtype::f16) detail::run_low_matmul<f16>(backend, p, a, b, y, o.accumulate);
  else refuse_on_host("matmul", y.element);
}

}}  // namespace neap::v0
