// Operators that are products of matrices, on a GPU: by the backend's product library if it has one that makes such a
// product (products.hpp), else by the kernels of gemm.hpp.
#pragma once

#include <neap/cuda/device_backend.hpp>
#include <neap/cuda/kernels/gemm.hpp>
#include <neap/cuda/products.hpp>
#include <neap/ir/operators/kernels/matmul.hpp>
#include <neap/ir/operators/kernels/matmul_update.hpp>

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {
inline cuda_gemm_tiling tiling_of(matmul_plan const& p) {
  return cuda_gemm_tiling::of(p.each.m, p.each.n, p.each.k, p.batches);
}
inline bytes_t gemm_scratch(matmul_plan const& p, dtype element) {
  return cuda_gemm_scratch(tiling_of(p), p.each.m, p.each.n, p.batches, element);
}

/// The largest power of two up to 16 that divides the addresses p, p + stride, ...
inline int alignment_of(void const* p, std::int64_t stride, bytes_t element) {
  auto const all = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p)) |
                   static_cast<std::uint64_t>(stride * element) | 16u;
  return static_cast<int>(all & (~all + 1));
}
/// A plan as a library takes it; of one batch axis at most.
inline cuda_product product_of(matmul_plan const& plan, dtype element, void const* a, void const* b, void const* y) {
  auto const& s = plan.each;
  cuda_product p{element, s.m, s.n, s.k, s.transpose_a, s.transpose_b, s.lda, s.ldb, s.ldc, plan.batches};
  if (plan.batch_rank > 0) p.stride_a = plan.stride_a[0], p.stride_b = plan.stride_b[0], p.stride_y = plan.stride_y[0];
  p.alignment_a = alignment_of(a, p.stride_a, size_of(element));
  p.alignment_b = alignment_of(b, p.stride_b, size_of(element));
  p.alignment_y = alignment_of(y, p.stride_y, size_of(element));
  return p;
}

template <class B>
cuda_library_way way_of(B& backend, matmul_plan const& plan, dtype element, void const* a, void const* b,
                        void const* y) {
  if constexpr (requires { backend.products(); })
    if (auto* const library = backend.products())
      return plan.batch_rank <= 1 ? library->way(product_of(plan, element, a, b, y))
                                  : cuda_library_way{false, "batches lie along more than one axis"};
  return {false, "the backend has no product library"};
}

template <class B>
void make_product(B& backend, matmul_plan const& plan, cuda_gemm_tiling const& tiling, dtype element, void const* a,
                  void const* b, void* y, bool accumulate) {
  if constexpr (requires { backend.products(); })
    if (way_of(backend, plan, element, a, b, y).by_library) {
      auto& library = *backend.products();
      return library.run(backend.stream(), product_of(plan, element, a, b, y), a, b, y, accumulate,
                         backend.scratch(library.scratch_bytes()));
    }
  bytes_t const bytes = cuda_gemm_scratch(tiling, plan.each.m, plan.each.n, plan.batches, element);
  cuda_gemm(backend, plan, tiling, element, a, b, y, 1, accumulate ? 1 : 0,
            bytes > 0 ? backend.scratch(bytes) : nullptr);
}
}  // namespace detail

/// Who makes such a product on this backend: its library, or our own kernel, and why.
template <device_backend B>
cuda_library_way matmul_way(B& backend, tensor_ref const& a, tensor_ref const& b, tensor_ref const& y,
                            matmul_options o = {}) {
  return detail::way_of(backend, detail::matmul_plan::of(a, b, y, o), y.element, a.data, b.data, y.data);
}

/// y[..., m, n] = op(a) op(b), or += that, in f16, bf16, f32 or f64: like the host's matmul, from which it differs by
/// rounding. Throws neap::error where layouts do not fit (see there).
template <device_backend B>
void matmul(B& backend, tensor_ref const& a, tensor_ref const& b, tensor_ref const& y, matmul_options o = {},
            void* = nullptr) {
  if (a.element != y.element || b.element != y.element)
    throw_error(
        {"matmul: element types differ, ", name_of(a.element), " x ", name_of(b.element), " -> ", name_of(y.element)});
  auto const p = detail::matmul_plan::of(a, b, y, o);
  detail::make_product(backend, p, detail::tiling_of(p), y.element, a.data, b.data, y.data, o.accumulate);
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace op {

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
  return cuda_gemm_scratch(cuda_gemm_tiling::of(s.m, s.n, s.k, 1), s.m, s.n, 1, element);
}
/// The parts of a gradient are cut into tiles as the whole is: they have its bits. A library would not promise that, and
/// makes gradients of one part alone.
template <device_backend B, class Update>
void run(B& b, matmul_update<Update> const& op, kernel_arguments const& a) {
  auto const product = op.product();
  auto const element = a.in[1].element;
  product.for_each_part(
      a,
      [&](gemm_shape const& s, gemm_parts const& cut, std::int64_t i) {
        auto const tiling = cuda_gemm_tiling::of(s.m, s.n, s.k, 1);
        bytes_t const size = size_of(element);
        std::int64_t const begin = cut.begin(i);
        neap::detail::matmul_plan p;
        p.each = s;
        (cut.rows ? p.each.m : p.each.n) = cut.end(s, i) - begin;
        auto const* left = a.in[1].as<std::byte const>();
        auto const* right = a.in[2].as<std::byte const>();
        if (cut.rows) left += begin * (s.transpose_a ? 1 : s.lda) * size;
        else right += begin * (s.transpose_b ? s.ldb : 1) * size;
        if (cut.count == 1) return neap::detail::make_product(b, p, tiling, element, left, right, a.workspace, false);
        bytes_t const bytes = cuda_gemm_scratch(tiling, p.each.m, p.each.n, 1, element);
        cuda_gemm(b, p, tiling, element, left, right, a.workspace, 1, 0, bytes > 0 ? b.scratch(bytes) : nullptr);
      },
      [&](kernel_arguments const& part) { run(b, op.update, part); });
}

}}}  // namespace neap::v0::op
