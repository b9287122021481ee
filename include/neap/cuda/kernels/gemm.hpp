// Products of matrices on a GPU by a kernel of our own, for what a product library refuses and for backends without one:
// any element type, any transposes. The code of the device is in gemm.cuh.
//
// A thread block of 256 threads makes a tile of 64 x 64 elements of y, 16 elements a thread, and walks along k in steps of
// 16; tiles of a and b pass through shared memory in the type of the sums. Sums are added in one order: along k from 0 on,
// by FMA. Where y has too few tiles for a device and k is long, k is cut into parts whose sums are added in order. Parts
// depend on extents alone.
#pragma once

#include <neap/backend/kernels/matmul.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/config.hpp>
#include <neap/core/element.hpp>
#include <neap/core/error.hpp>
#include <neap/core/tensor_ref.hpp>
#include <neap/core/units.hpp>
#include <neap/cuda/device_backend.hpp>

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 {

/// How a product is cut on a GPU.
struct cuda_gemm_tiling {
  static constexpr std::int64_t side = 64;  // of a tile of y
  std::int64_t k_parts = 1;                 // sums of their own, added in order
  std::int64_t k_length = 0;                // of each part, a multiple of 64; the last may be shorter

  /// For `batches` products of [m, k] and [k, n].
  static constexpr cuda_gemm_tiling of(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batches) {
    // 132 multiprocessors of the largest device that we know, and some more, so that the last ones are not idle for long.
    constexpr std::int64_t enough_tiles = 160, least_k = 512, max_parts = 16;
    std::int64_t const tiles = (m + side - 1) / side * ((n + side - 1) / side) * batches;
    cuda_gemm_tiling t;
    t.k_parts = std::clamp<std::int64_t>(enough_tiles / std::max<std::int64_t>(tiles, 1), 1,
                                         std::clamp<std::int64_t>(k / least_k, 1, max_parts));
    t.k_length = (std::max<std::int64_t>(k, 1) + t.k_parts - 1) / t.k_parts;
    if (t.k_parts > 1) t.k_length = (t.k_length + 63) / 64 * 64;
    t.k_parts = (std::max<std::int64_t>(k, 1) + t.k_length - 1) / t.k_length;
    return t;
  }
  friend constexpr bool operator==(cuda_gemm_tiling const&, cuda_gemm_tiling const&) = default;
};

namespace detail {

/// A product as its kernel takes it: y = alpha op(a) op(b) + beta y for each batch, or the parts' sums.
template <class T>
struct gemm_operands {
  using C = compute_t<T>;
  T const* a;
  T const* b;
  T* y;
  C* parts;  // [k_parts, batches, m, n], or null: y is written
  C alpha, beta;
  matmul_plan plan;
  cuda_gemm_tiling tiling;
};

/// The tile of y, and the part of k, that a thread block makes: rows are the fastest, then columns, the part, the batch.
struct gemm_tile {
  std::int64_t row, column, part, batch;

  NEAP_HD static gemm_tile of(std::int64_t block, std::int64_t m, std::int64_t n, std::int64_t parts) {
    constexpr std::int64_t side = cuda_gemm_tiling::side;
    std::int64_t const down = (m + side - 1) / side, tiles = down * ((n + side - 1) / side);
    std::int64_t const tile = block % tiles, rest = block / tiles;
    return {tile % down * side, tile / down * side, rest % parts, rest / parts};
  }
};

template <class T, bool TransposeA, bool TransposeB>
struct gemm_block {
  static constexpr int threads = 256, blocks_at_once = 2;
  static constexpr int depth = 16;                                   // steps of k of a tile
  static constexpr int pitch = sizeof(compute_t<T>) == 8 ? 65 : 66;  // from step to step: no bank conflicts
  static constexpr int shared_bytes = 2 * depth * pitch * int{sizeof(compute_t<T>)};
  gemm_operands<T> p;
#if defined(__CUDACC__)
  __device__ void operator()(unsigned char* shared) const;
#endif
};

/// y = alpha (sum of the parts in order) + beta y: a row of a batch's y each.
template <class T>
struct add_gemm_parts {
  static constexpr bool splits = true;
  using C = compute_t<T>;
  gemm_operands<T> p;

  template <class Block>
  NEAP_HD void operator()(Block& block) const {
    auto const& s = p.plan.each;
    std::int64_t const batch = block.id / s.m, row = block.id % s.m, n = s.n, parts = p.tiling.k_parts,
                       next = p.plan.batches * s.m * n;
    C const* const from = p.parts + block.id * n;
    T* const to = p.y + p.plan.offset(p.plan.stride_y, batch) + row * s.ldc;
    C const alpha = p.alpha, beta = p.beta;
    block.each(n, [=](std::int64_t j) {
      C sum = from[j];
      for (std::int64_t part = 1; part < parts; ++part) sum += from[part * next + j];
      sum *= alpha;
      if (beta != C(0)) sum += beta * static_cast<C>(to[j]);
      to[j] = convert<T>(sum);
    });
  }
};

template <class T, class B>
void run_cuda_gemm(B& backend, matmul_plan const& plan, cuda_gemm_tiling const& tiling, void const* a, void const* b,
                   void* y, double alpha, double beta, void* scratch) {
  using C = compute_t<T>;
  auto const& s = plan.each;
  if (plan.batches == 0 || s.m == 0 || s.n == 0) return;
  constexpr std::int64_t side = cuda_gemm_tiling::side;
  gemm_operands<T> const p{static_cast<T const*>(a),
                           static_cast<T const*>(b),
                           static_cast<T*>(y),
                           tiling.k_parts > 1 ? static_cast<C*>(scratch) : nullptr,
                           static_cast<C>(alpha),
                           static_cast<C>(beta),
                           plan,
                           tiling};
  std::int64_t const blocks = (s.m + side - 1) / side * ((s.n + side - 1) / side) * tiling.k_parts * plan.batches;
  if (s.transpose_a && s.transpose_b) backend.launch_blocks(blocks, gemm_block<T, true, true>{p});
  else if (s.transpose_a) backend.launch_blocks(blocks, gemm_block<T, true, false>{p});
  else if (s.transpose_b) backend.launch_blocks(blocks, gemm_block<T, false, true>{p});
  else backend.launch_blocks(blocks, gemm_block<T, false, false>{p});
  if (tiling.k_parts > 1) backend.launch(plan.batches * s.m, add_gemm_parts<T>{p}, s.n);
}

}  // namespace detail

/// Bytes of scratch memory of a product that is cut like this.
constexpr bytes_t cuda_gemm_scratch(cuda_gemm_tiling const& t, std::int64_t m, std::int64_t n, std::int64_t batches,
                                    dtype element) {
  return t.k_parts > 1 ? t.k_parts * batches * m * n * size_of(computed_in(element)) : 0;
}

/// y = alpha op(a) op(b) + beta y for each batch of the plan, in elements of f16, bf16, f32 or f64; with beta = 0, y is
/// not read. `scratch`: cuda_gemm_scratch bytes, aligned to 16. Throws neap::error for other elements. Returns when the
/// launches are made.
template <device_backend B>
void cuda_gemm(B& backend, detail::matmul_plan const& plan, cuda_gemm_tiling const& tiling, dtype element,
               void const* a, void const* b, void* y, double alpha = 1, double beta = 0, void* scratch = nullptr) {
  with_floating(element, [&](auto tag) {
    detail::run_cuda_gemm<typename decltype(tag)::type>(backend, plan, tiling, a, b, y, alpha, beta, scratch);
  });
}

}}  // namespace neap::v0
