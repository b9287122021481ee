// Products of matrices on a GPU: the code of the device. gemm.hpp has the tiles.
#pragma once

#include <neap/backend/strided.hpp>
#include <neap/core/element.hpp>
#include <neap/cuda/kernels/gemm.hpp>
#include <neap/cuda/launch.cuh>

#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// Copies a tile of `lines` rows or columns from `first` on, steps [k, end), to shared memory, by steps; zeros beyond.
/// AlongLines: neighbours in memory are neighbouring lines, else they are neighbouring steps.
template <bool AlongLines, int Depth, int Pitch, int Threads, class T, class C>
__device__ void copy_tile(T const* from, std::int64_t ld, std::int64_t first, std::int64_t lines, std::int64_t k,
                          std::int64_t end, C* to) {
  constexpr int side = int{cuda_gemm_tiling::side};
#pragma unroll
  for (int i = 0; i < side * Depth; i += Threads) {
    int const at = i + static_cast<int>(threadIdx.x), line = AlongLines ? at % side : at / Depth,
              step = AlongLines ? at / side : at % Depth;
    bool const inside = first + line < lines && k + step < end;
    to[step * Pitch + line] =
        inside ? static_cast<C>(from[AlongLines ? (k + step) * ld + first + line : (first + line) * ld + k + step])
               : C(0);
  }
}

template <class T, bool TransposeA, bool TransposeB>
__device__ void gemm_block<T, TransposeA, TransposeB>::operator()(unsigned char* shared) const {
  using C = compute_t<T>;
  auto const& s = p.plan.each;
  gemm_tile const tile = gemm_tile::of(blockIdx.x, s.m, s.n, p.tiling.k_parts);
  std::int64_t const begin = tile.part * p.tiling.k_length, end = min(begin + p.tiling.k_length, s.k);
  T const* const a = p.a + p.plan.offset(p.plan.stride_a, tile.batch);
  T const* const b = p.b + p.plan.offset(p.plan.stride_b, tile.batch);
  C* const tile_a = reinterpret_cast<C*>(shared);
  C* const tile_b = tile_a + depth * pitch;
  int const x = static_cast<int>(threadIdx.x) % 16, y = static_cast<int>(threadIdx.x) / 16;

  C sum[4][4] = {};  // of rows y + 16 i and columns x + 16 j
  for (std::int64_t k = begin; k < end; k += depth) {
    copy_tile<TransposeA, depth, pitch, threads>(a, s.lda, tile.row, s.m, k, end, tile_a);
    copy_tile<!TransposeB, depth, pitch, threads>(b, s.ldb, tile.column, s.n, k, end, tile_b);
    __syncthreads();
#pragma unroll
    for (int step = 0; step < depth; ++step) {
      C left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        left[i] = tile_a[step * pitch + y + 16 * i];
        right[i] = tile_b[step * pitch + x + 16 * i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] = fma(left[i], right[j], sum[i][j]);
    }
    __syncthreads();
  }

  C* const parts = p.parts ? p.parts + (tile.part * p.plan.batches + tile.batch) * s.m * s.n : nullptr;
  T* const to = p.y + p.plan.offset(p.plan.stride_y, tile.batch);
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      std::int64_t const row = tile.row + y + 16 * i, column = tile.column + x + 16 * j;
      if (row >= s.m || column >= s.n) continue;
      if (parts) {
        parts[row * s.n + column] = sum[i][j];
      } else {
        T& out = to[row * s.ldc + column];
        C z = p.alpha * sum[i][j];
        if (p.beta != C(0)) z += p.beta * static_cast<C>(out);
        out = convert<T>(z);
      }
    }
}

}}}  // namespace neap::v0::detail
