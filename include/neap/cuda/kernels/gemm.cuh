// Products of matrices on a GPU: the code of the device. gemm.hpp has the tiles, and why they are such.
#pragma once

#include <neap/backend/strided.hpp>
#include <neap/cuda/kernels/gemm.hpp>
#include <neap/cuda/kernels/tile_product.cuh>
#include <neap/cuda/launch.cuh>

#include <cstdint>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

template <class Product, class Block>
inline constexpr bool fits_block =
    Product::threads == Block::threads && Product::stages * 2 * Product::tile_bytes == Block::shared_bytes;

/// Where a tile's results go: y, or the sums of a part.
template <class T>
class gemm_result {
 public:
  using C = compute_t<T>;

  __device__ gemm_result(gemm_operands<T> const& p, gemm_tile const& tile)
      : m_(p.plan.each.m - tile.row),
        n_(p.plan.each.n - tile.column),
        alpha_(p.alpha),
        beta_(p.beta) {
    auto const& s = p.plan.each;
    if (p.parts) {
      parts_ = p.parts + ((tile.part * p.plan.batches + tile.batch) * s.m + tile.row) * s.n + tile.column;
      ld_ = s.n;
    } else {
      y_ = p.y + p.plan.offset(p.plan.stride_y, tile.batch) + tile.row * s.ldc + tile.column;
      ld_ = s.ldc;
    }
  }

  /// N neighbours of a row, from `column` of the tile on; `together`: they can be written at once.
  template <int N>
  __device__ void put(int row, int column, C const (&sum)[N], bool together) const {
    if (row >= m_ || column >= n_) return;
    std::int64_t const at = row * ld_ + column;
    if (parts_) {
      if (together && column + N <= n_) {
        store_together(parts_ + at, sum);
      } else {
#pragma unroll
        for (int j = 0; j < N; ++j)
          if (column + j < n_) parts_[at + j] = sum[j];
      }
      return;
    }
    T out[N];
#pragma unroll
    for (int j = 0; j < N; ++j) {
      C x = alpha_ * sum[j];
      if (beta_ != C(0) && column + j < n_) x += beta_ * static_cast<C>(y_[at + j]);
      out[j] = convert<T>(x);
    }
    if (together && column + N <= n_) {
      store_together(y_ + at, out);
    } else {
#pragma unroll
      for (int j = 0; j < N; ++j)
        if (column + j < n_) y_[at + j] = out[j];
    }
  }

 private:
  C* parts_ = nullptr;
  T* y_ = nullptr;
  std::int64_t ld_, m_, n_;
  C alpha_, beta_;

  template <class E, int N>
  __device__ static void store_together(E* to, E const (&x)[N]) {
    struct alignas(N * sizeof(E)) together {
      E at[N];
    };
    together t;
#pragma unroll
    for (int j = 0; j < N; ++j) t.at[j] = x[j];
    if constexpr (sizeof(t) == 4) *reinterpret_cast<std::uint32_t*>(to) = __builtin_bit_cast(std::uint32_t, t);
    else if constexpr (sizeof(t) == 8) *reinterpret_cast<uint2*>(to) = __builtin_bit_cast(uint2, t);
    else *reinterpret_cast<uint4*>(to) = __builtin_bit_cast(uint4, t);
  }
};

/// The part of k that a tile sums: where it begins, how long it is.
struct gemm_depth {
  std::int64_t begin;
  int length;

  __device__ gemm_depth(cuda_gemm_tiling const& t, std::int64_t k, gemm_tile const& tile)
      : begin(tile.part * t.k_length),
        length(static_cast<int>(min(t.k_length, k - begin))) {}
  __device__ int steps(int depth) const { return (length + depth - 1) / depth; }
};

/// The first elements of op(a) and op(b) that a tile reads.
template <bool Transpose, class T>
__device__ T const* first_of_a(gemm_operands<T> const& p, gemm_tile const& tile, gemm_depth const& k) {
  auto const* const a = p.a + p.plan.offset(p.plan.stride_a, tile.batch);
  return a + (Transpose ? k.begin * p.plan.each.lda + tile.row : tile.row * p.plan.each.lda + k.begin);
}
template <bool Transpose, class T>
__device__ T const* first_of_b(gemm_operands<T> const& p, gemm_tile const& tile, gemm_depth const& k) {
  auto const* const b = p.b + p.plan.offset(p.plan.stride_b, tile.batch);
  return b + (Transpose ? tile.column * p.plan.each.ldb + k.begin : k.begin * p.plan.each.ldb + tile.column);
}

template <class T, bool TransposeA, bool TransposeB, int Side>
__device__ void gemm_by_tensor_cores<T, TransposeA, TransposeB, Side>::operator()(unsigned char* shared) const {
  using product = tensor_core_product<T, TransposeA, TransposeB, Side>;
  static_assert(fits_block<product, tensor_core_block<Side>>);
  constexpr int depth = product::depth;
  auto const& s = p.plan.each;
  gemm_tile const tile = gemm_tile::of(blockIdx.x, s.m, s.n, Side, p.tiling.k_parts);
  gemm_depth const k(p.tiling, s.k, tile);
  tile_copier<T, TransposeA ? depth : Side, TransposeA ? Side : depth, product::threads, TransposeA> copy_a(
      first_of_a<TransposeA>(p, tile, k), s.lda, s.m - tile.row, k.length, p.packs_a);
  tile_copier<T, TransposeB ? Side : depth, TransposeB ? depth : Side, product::threads, !TransposeB> copy_b(
      first_of_b<TransposeB>(p, tile, k), s.ldb, s.n - tile.column, k.length, p.packs_b);
  product sums;
  multiply_along_k(sums, shared, k.steps(depth), copy_a, copy_b);

  gemm_result<T> const result(p, tile);
  bool const pairs = p.parts ? s.n % 2 == 0 : p.pairs_y;
  sums.for_each([&](int row, int column, auto const& two) { result.put(row, column, two, pairs); });
}

template <class T, bool TransposeA, bool TransposeB, int Side>
__device__ void gemm_by_fma<T, TransposeA, TransposeB, Side>::operator()(unsigned char* shared) const {
  using product = fma_product<T, Side>;
  static_assert(fits_block<product, fma_block<T, Side>>);
  auto const& s = p.plan.each;
  gemm_tile const tile = gemm_tile::of(blockIdx.x, s.m, s.n, Side, p.tiling.k_parts);
  gemm_depth const k(p.tiling, s.k, tile);
  element_copier<T, Side, product::depth, product::line, product::threads, TransposeA> copy_a(
      first_of_a<TransposeA>(p, tile, k), s.lda, s.m - tile.row, k.length);
  element_copier<T, Side, product::depth, product::line, product::threads, !TransposeB> copy_b(
      first_of_b<TransposeB>(p, tile, k), s.ldb, s.n - tile.column, k.length);
  product sums;
  multiply_along_k(sums, shared, k.steps(product::depth), copy_a, copy_b);

  gemm_result<T> const result(p, tile);
  bool const together = p.parts ? s.n % product::pack == 0 : p.packs_y;
  sums.for_each([&](int row, int column, auto const& neighbours) { result.put(row, column, neighbours, together); });
}

template <class T, bool TransposeA, bool TransposeB, int Side>
__device__ void gemm_by_tf32<T, TransposeA, TransposeB, Side>::operator()(unsigned char* shared) const {
  using product = tf32_product<Side>;
  static_assert(fits_block<product, tf32_block<Side>>);
  auto const& s = p.plan.each;
  gemm_tile const tile = gemm_tile::of(blockIdx.x, s.m, s.n, Side, p.tiling.k_parts);
  gemm_depth const k(p.tiling, s.k, tile);
  element_copier<T, Side, product::depth, product::line, product::threads, TransposeA, product::lanes_of_k> copy_a(
      first_of_a<TransposeA>(p, tile, k), s.lda, s.m - tile.row, k.length);
  element_copier<T, Side, product::depth, product::line, product::threads, !TransposeB, product::lanes_of_k> copy_b(
      first_of_b<TransposeB>(p, tile, k), s.ldb, s.n - tile.column, k.length);
  product sums;
  multiply_along_k(sums, shared, k.steps(product::depth), copy_a, copy_b);

  gemm_result<T> const result(p, tile);
  bool const pairs = p.parts ? s.n % 2 == 0 : p.pairs_y;
  sums.for_each([&](int row, int column, auto const& two) { result.put(row, column, two, pairs); });
}

}}}  // namespace neap::v0::detail
