// Operators that are products of matrices, on a GPU: by the kernels of gemm.hpp.
#pragma once

#include <neap/cuda/device_backend.hpp>
#include <neap/cuda/kernels/gemm.hpp>
#include <neap/ir/operators/matmul.hpp>
#include <neap/ir/operators/matmul_update.hpp>

#include <cstddef>
#include <cstdint>

namespace neap::inline v0 {

namespace detail {
inline cuda_gemm_tiling tiling_of(matmul_plan const& p, dtype element) {
  return cuda_gemm_tiling::of(p.each.m, p.each.n, p.each.k, p.batches, element);
}
inline bytes_t gemm_scratch(matmul_plan const& p, dtype element) {
  return cuda_gemm_scratch(tiling_of(p, element), p.each.m, p.each.n, p.batches, element);
}
}  // namespace detail

/// y[..., m, n] = op(a) op(b), or += that, in f16, bf16, f32 or f64: like the host's matmul, from which it differs by
/// rounding. Throws neap::error where layouts do not fit (see there).
template <device_backend B>
void matmul(B& backend, tensor_ref const& a, tensor_ref const& b, tensor_ref const& y, matmul_options o = {},
            void* = nullptr) {
  if (a.element != y.element || b.element != y.element)
    throw_error(
        {"matmul: element types differ, ", name_of(a.element), " x ", name_of(b.element), " -> ", name_of(y.element)});
  auto const p = detail::matmul_plan::of(a, b, y, o);
  bytes_t const bytes = detail::gemm_scratch(p, y.element);
  cuda_gemm(backend, p, detail::tiling_of(p, y.element), y.element, a.data, b.data, y.data, 1, o.accumulate ? 1 : 0,
            bytes > 0 ? backend.scratch(bytes) : nullptr);
}

}  // namespace neap::inline v0

namespace neap::inline v0::op {

inline bytes_t device_scratch(matmul const& op, work_context const& c) {
  return neap::detail::gemm_scratch(
      neap::detail::matmul_plan::of(detail::unplaced(c.in[0]), detail::unplaced(c.in[1]), detail::unplaced(c.out[0]),
                                    {op.transpose_a, op.transpose_b, false}),
      c.out[0].type.element);
}
template <device_backend B>
void run(B& b, matmul const& op, kernel_arguments const& a) {
  neap::matmul(b, a.in[0], a.in[1], a.out[0], {op.transpose_a, op.transpose_b, false});
}

template <class Update>
bytes_t device_scratch(matmul_update<Update> const& op, work_context const& c) {
  auto const s = op.product().shape_of(c.in[1], c.in[2]);
  auto const element = c.in[1].type.element;
  return cuda_gemm_scratch(cuda_gemm_tiling::of(s.m, s.n, s.k, 1, element), s.m, s.n, 1, element);
}
/// The parts of the gradient are tiles of the whole, which decides how they are cut: their bits are those of the whole.
template <device_backend B, class Update>
void run(B& b, matmul_update<Update> const& op, kernel_arguments const& a) {
  auto const product = op.product();
  auto const element = a.in[1].element;
  product.for_each_part(
      a,
      [&](gemm_shape const& s, gemm_parts const& cut, std::int64_t i) {
        auto const tiling = cuda_gemm_tiling::of(s.m, s.n, s.k, 1, element);
        bytes_t const bytes = cuda_gemm_scratch(tiling, s.m, s.n, 1, element), size = size_of(element);
        std::int64_t const begin = cut.begin(i);
        neap::detail::matmul_plan p;
        p.each = s;
        (cut.rows ? p.each.m : p.each.n) = cut.end(s, i) - begin;
        auto const* left = a.in[1].as<std::byte const>();
        auto const* right = a.in[2].as<std::byte const>();
        if (cut.rows) left += begin * (s.transpose_a ? 1 : s.lda) * size;
        else right += begin * (s.transpose_b ? s.ldb : 1) * size;
        cuda_gemm(b, p, tiling, element, left, right, a.workspace, 1, 0, bytes > 0 ? b.scratch(bytes) : nullptr);
      },
      [&](kernel_arguments const& part) { run(b, op.update, part); });
}

}  // namespace neap::inline v0::op
