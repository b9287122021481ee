// Products of matrices on a GPU by kernels of our own: what they compute, how it is cut into tiles, and their launch.
// The code of the device is in gemm.cuh. bf16 and f16 are multiplied on tensor cores and added in f32; f32 and f64 are
// multiplied and added by FMA in their own type.
//
// Tiles. A thread block makes a tile of y and walks along k; tiles of a and b pass through a ring in shared memory.
//
//   element    tile      threads  of a thread        shared memory       registers allowed
//   bf16, f16  128x128   256      warp tile 64x32    3 x 16 KiB = 48     128: 2 blocks a multiprocessor
//   bf16, f16  64x64     128      warp tile 32x32    3 x 8 KiB = 24      128: 4 blocks
//   tf32       as bf16   as bf16  as bf16            2 x 17 KiB = 34      as bf16
//   f32        128x128   256      8x8                2 x 16.5 KiB = 33   128: 2 blocks
//   f32, f64   64x64     256      4x4                2 x 8.5 KiB = 17    80:  3 blocks (of f64 twice as many bytes)
//
// A tile of 128x128 reads 2 * 128 elements of each step of k for 128 * 128 multiply-adds: 64 a element, above the ratio of
// tensor throughput to bandwidth of the second-level cache; 64x64 has 32, and is for products that have too few large
// tiles to occupy a device. Shared memory of two large blocks fits the 100 KiB of the smallest multiprocessor (sm_86).
//
// Sums are added in one order: along k from 0 on, by a tensor core 16 at once. Where y has too few tiles for a device and
// k is long, k is cut into parts whose sums are added in order. Tiles and parts depend on extents and element alone.
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
#include <limits>
#include <type_traits>

namespace neap { inline namespace v0 {

/// How a product is cut on a GPU.
struct cuda_gemm_tiling {
  int side = 64;              // of a tile of y: 128 or 64
  std::int64_t k_parts = 1;   // sums of their own, added in order
  std::int64_t k_length = 0;  // of each part, a multiple of 64; the last may be shorter

  /// For `batches` products of [m, k] and [k, n]. The extents and the element decide.
  static constexpr cuda_gemm_tiling of(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batches,
                                       dtype element) {
    // 132 multiprocessors of the largest device that we know, and some more, so that the last ones are not idle for long.
    constexpr std::int64_t enough_tiles = 160, least_k = 512, max_parts = 16;
    auto const tiles = [&](std::int64_t edge) { return ((m + edge - 1) / edge) * ((n + edge - 1) / edge) * batches; };
    cuda_gemm_tiling t;
    std::int64_t const possible_parts = std::clamp<std::int64_t>(k / least_k, 1, max_parts);
    if (element != dtype::f64 && std::min(m, n) > 64 && tiles(128) * possible_parts >= enough_tiles / 2) t.side = 128;
    std::int64_t const here = std::max<std::int64_t>(tiles(t.side), 1);
    t.k_parts = std::clamp<std::int64_t>(enough_tiles / here, 1, possible_parts);
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
  bool packs_a, packs_b, pairs_y;  // whether 16 bytes of a or b can be read at once, two elements of y be written
  bool packs_y;                    // 16 bytes of y
};

/// Thread blocks that multiply tiles of Side rows and columns; tile_product.cuh has the code.
template <int Side>
struct tensor_core_block {
  static constexpr int threads = Side == 128 ? 256 : 128, blocks_at_once = Side == 128 ? 2 : 4;
  static constexpr int shared_bytes = 3 * 2 * Side * 32 * 2;
};
template <class T, int Side>
struct fma_block {
  static constexpr int threads = 256, blocks_at_once = Side == 128 || sizeof(T) == 8 ? 2 : 3;
  static constexpr int shared_bytes = 2 * 2 * 16 * (Side * int{sizeof(T)} + 16);
};

template <int Side>
struct tf32_block {
  static constexpr int threads = Side == 128 ? 256 : 128, blocks_at_once = Side == 128 ? 2 : 4;
  static constexpr int shared_bytes = 2 * 2 * 16 * (Side + 8) * 4;
};

/// The tile of y, and the part of k, that a thread block makes: the tile is the fastest, then the part, then the batch.
/// Blocks that run at the same time make a square of tiles rather than a row, to share what they read.
struct gemm_tile {
  std::int64_t row, column, part, batch;

  NEAP_HD static gemm_tile of(std::int64_t block, std::int64_t m, std::int64_t n, int side, std::int64_t parts) {
    constexpr std::int64_t group = 8;  // rows of tiles
    std::int64_t const down = (m + side - 1) / side, across = (n + side - 1) / side, tiles = down * across;
    std::int64_t const tile = block % tiles, rest = block / tiles;
    std::int64_t const first = tile / (group * across) * group, left = down - first, rows = left < group ? left : group,
                       in_group = tile - first * across;
    return {(first + in_group % rows) * side, in_group / rows * side, rest % parts, rest / parts};
  }
};

/// Tensor cores, 16-bit elements. See above for the tiles.
template <class T, bool TransposeA, bool TransposeB, int Side>
struct gemm_by_tensor_cores : tensor_core_block<Side> {
  gemm_operands<T> p;
#if defined(__CUDACC__)
  __device__ void operator()(unsigned char* shared) const;
#endif
};

/// Multiply-adds of the element's own type.
template <class T, bool TransposeA, bool TransposeB, int Side>
struct gemm_by_fma : fma_block<T, Side> {
  gemm_operands<T> p;
#if defined(__CUDACC__)
  __device__ void operator()(unsigned char* shared) const;
#endif
};

/// f32 with operands rounded to tf32, on tensor cores.
template <class T, bool TransposeA, bool TransposeB, int Side>
struct gemm_by_tf32 : tf32_block<Side> {
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

/// Whether rows of `ld` elements from p on, and the matrices at these strides, begin at multiples of `bytes`.
inline bool begins_at_multiples(void const* p, int bytes, bytes_t element, std::int64_t ld, int batch_rank,
                                std::int64_t const* strides) {
  auto all = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p)) | static_cast<std::uint64_t>(ld * element);
  for (int i = 0; i < batch_rank; ++i) all |= static_cast<std::uint64_t>(strides[i] * element);
  return all % static_cast<unsigned>(bytes) == 0;
}

template <template <class, bool, bool, int> class Kernel, class T, int Side, class B>
void launch_gemm(B& backend, gemm_operands<T> const& p, std::int64_t blocks) {
  auto const& s = p.plan.each;
  if (s.transpose_a && s.transpose_b) backend.launch_blocks(blocks, Kernel<T, true, true, Side>{{}, p});
  else if (s.transpose_a) backend.launch_blocks(blocks, Kernel<T, true, false, Side>{{}, p});
  else if (s.transpose_b) backend.launch_blocks(blocks, Kernel<T, false, true, Side>{{}, p});
  else backend.launch_blocks(blocks, Kernel<T, false, false, Side>{{}, p});
}

template <class T, class B>
void run_cuda_gemm(B& backend, matmul_plan const& plan, cuda_gemm_tiling const& tiling, void const* a, void const* b,
                   void* y, double alpha, double beta, void* scratch, bool tf32) {
  using C = compute_t<T>;
  auto const& s = plan.each;
  if (plan.batches == 0 || s.m == 0 || s.n == 0) return;
  if (std::max({s.m, s.n, s.k}) > std::int64_t{std::numeric_limits<int>::max()} - 256)
    throw_error({"matmul: an extent of ", std::max({s.m, s.n, s.k}), " exceeds what its kernel on a GPU counts with"});
  auto const element = static_cast<bytes_t>(sizeof(T));
  auto const begins = [&](void const* at, int bytes, std::int64_t ld, std::int64_t const* strides) {
    return begins_at_multiples(at, bytes, element, ld, plan.batch_rank, strides);
  };
  gemm_operands<T> const p{static_cast<T const*>(a),
                           static_cast<T const*>(b),
                           static_cast<T*>(y),
                           tiling.k_parts > 1 ? static_cast<C*>(scratch) : nullptr,
                           static_cast<C>(alpha),
                           static_cast<C>(beta),
                           plan,
                           tiling,
                           begins(a, 16, s.lda, plan.stride_a),
                           begins(b, 16, s.ldb, plan.stride_b),
                           begins(y, 2 * sizeof(T), s.ldc, plan.stride_y),
                           begins(y, 16, s.ldc, plan.stride_y)};
  std::int64_t const side = tiling.side,
                     blocks = ((s.m + side - 1) / side) * ((s.n + side - 1) / side) * tiling.k_parts * plan.batches;
  if constexpr (sizeof(T) == 2) {
    if (side == 128) launch_gemm<gemm_by_tensor_cores, T, 128>(backend, p, blocks);
    else launch_gemm<gemm_by_tensor_cores, T, 64>(backend, p, blocks);
  } else if constexpr (sizeof(T) == 4) {
    if (tf32 && side == 128) launch_gemm<gemm_by_tf32, T, 128>(backend, p, blocks);
    else if (tf32) launch_gemm<gemm_by_tf32, T, 64>(backend, p, blocks);
    else if (side == 128) launch_gemm<gemm_by_fma, T, 128>(backend, p, blocks);
    else launch_gemm<gemm_by_fma, T, 64>(backend, p, blocks);
  } else {
    launch_gemm<gemm_by_fma, T, 64>(backend, p, blocks);
  }
  if (tiling.k_parts > 1) backend.launch(plan.batches * s.m, add_gemm_parts<T>{p}, s.n);
}

}  // namespace detail

/// Bytes of scratch memory of a product that is cut like this.
constexpr bytes_t cuda_gemm_scratch(cuda_gemm_tiling const& t, std::int64_t m, std::int64_t n, std::int64_t batches,
                                    dtype element) {
  return t.k_parts > 1 ? t.k_parts * batches * m * n * size_of(computed_in(element)) : 0;
}

/// y = alpha op(a) op(b) + beta y for each batch of the plan, in elements of f16, bf16, f32 or f64; with beta = 0, y is
/// not read. `scratch`: cuda_gemm_scratch bytes, aligned to 16. Throws neap::error for other elements and extents beyond
/// 2^31. With `tf32`, operands of f32 are rounded to 10 bits of mantissa, and tensor cores multiply them. Returns when the
/// launches are made.
template <device_backend B>
void cuda_gemm(B& backend, detail::matmul_plan const& plan, cuda_gemm_tiling const& tiling, dtype element,
               void const* a, void const* b, void* y, double alpha = 1, double beta = 0, void* scratch = nullptr,
               bool tf32 = false) {
  with_floating(element, [&](auto tag) {
    detail::run_cuda_gemm<typename decltype(tag)::type>(backend, plan, tiling, a, b, y, alpha, beta, scratch, tf32);
  });
}

}}  // namespace neap::v0
