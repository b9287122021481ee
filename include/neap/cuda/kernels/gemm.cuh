// Products of matrices on a GPU: the code of the device. gemm.hpp has the tiles, and why they are such.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/cuda/kernels/gemm.hpp>
#include <neap/cuda/launch.cuh>
#include <neap/cuda/mma.cuh>

#include <cstdint>
#include <type_traits>

namespace neap::inline v0::detail {

// ---- tensor cores
//
// A tile in shared memory has Lines lines of Length elements, as they lie in global memory, in packs of 8 elements (16
// bytes) whose places in a line are permuted (swizzled, mma.cuh).

/// Where a pack of a line lies, in bytes.
template <int Length>
__device__ inline std::uint32_t pack_place(int line, int pack) {
  return static_cast<std::uint32_t>(swizzled<Length / 8>(line, pack)) * 16;
}

/// Four 8 x 8 matrices as they lie in shared memory, or transposed.
template <bool Transposed>
__device__ inline void load_fragments(std::uint32_t (&r)[4], std::uint32_t line) {
  if constexpr (Transposed) load_transposed(r, line);
  else load_matrices(r, line);
}

/// 16 bytes of registers.
__device__ inline void store_pack(std::uint32_t to, std::uint32_t const (&word)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(word[0]), "r"(word[1]), "r"(word[2]),
               "r"(word[3])
               : "memory");
}

/// Copies tiles of a matrix of 16-bit elements to shared memory, along k; what lies beyond the matrix becomes zero.
/// AlongLines: lines are steps of k, else packs are.
template <class T, int Lines, int Length, int Threads, bool AlongLines>
class tile_copier {
 public:
  /// `begin`: the first element of the first tile; `room`: how far the matrix goes on from there across k; `depth`: how far
  /// along k; `packs`: all lines begin at multiples of 16 bytes.
  __device__ tile_copier(T const* begin, std::int64_t ld, std::int64_t room, int depth, bool packs)
      : from_(begin + first_line() * ld + pack() * 8),
        ld_(ld),
        room_(static_cast<int>(min(room, std::int64_t{AlongLines ? Length : Lines}))),
        left_(depth),
        packs_(packs) {}

  /// Begins the copy of the next tile.
  __device__ void next(std::uint32_t to) {
#pragma unroll
    for (int r = 0; r < count; ++r) {
      int const line = first_line() + r * lines_at_once;
      bool const is_inside = AlongLines ? line < left_ : line < room_;
      int const n = is_inside ? min(max((AlongLines ? room_ : left_) - pack() * 8, 0), 8) : 0;
      copy(to + pack_place<Length>(line, pack()), from_ + r * lines_at_once * ld_, n);
    }
    from_ += AlongLines ? Lines * ld_ : Length;
    left_ -= AlongLines ? Lines : Length;
  }

 private:
  static constexpr int per_line = Length / 8, lines_at_once = Threads / per_line, count = Lines / lines_at_once;
  static_assert(Threads % per_line == 0 && Lines % lines_at_once == 0);

  __device__ static int pack() { return static_cast<int>(threadIdx.x) % per_line; }
  __device__ static int first_line() { return static_cast<int>(threadIdx.x) / per_line; }

  /// n elements of a pack.
  __device__ void copy(std::uint32_t to, T const* from, int n) const {
    if (packs_) return copy_async<16>(to, from, n * 2);
    std::uint32_t word[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      std::uint32_t const low = 2 * j < n ? from[2 * j].bits : 0, high = 2 * j + 1 < n ? from[2 * j + 1].bits : 0;
      word[j] = low | high << 16;
    }
    store_pack(to, word);
  }

  T const* from_;
  std::int64_t ld_;
  int room_, left_;
  bool packs_;
};

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

template <class T, bool TransposeA, bool TransposeB, int Side>
__device__ void gemm_by_tensor_cores<T, TransposeA, TransposeB, Side>::operator()(unsigned char* shared) const {
  // Lines of a tile: rows of a or steps of k (a stored transposed); columns of b (stored transposed) or steps of k.
  constexpr int lines_a = TransposeA ? depth : Side, length_a = TransposeA ? Side : depth;
  constexpr int lines_b = TransposeB ? Side : depth, length_b = TransposeB ? depth : Side;
  constexpr int tiles_m = warp_rows / 16, tiles_n = warp_columns / 8;

  auto const& s = p.plan.each;
  gemm_tile const tile = gemm_tile::of(blockIdx.x, s.m, s.n, Side, p.tiling.k_parts);
  std::int64_t const k0 = tile.part * p.tiling.k_length;
  int const k = static_cast<int>(min(p.tiling.k_length, s.k - k0)), steps = (k + depth - 1) / depth;
  tile_copier<T, lines_a, length_a, threads, TransposeA> copy_a(
      p.a + p.plan.offset(p.plan.stride_a, tile.batch) + (TransposeA ? k0 * s.lda + tile.row : tile.row * s.lda + k0),
      s.lda, s.m - tile.row, k, p.packs_a);
  tile_copier<T, lines_b, length_b, threads, !TransposeB> copy_b(
      p.b + p.plan.offset(p.plan.stride_b, tile.batch) +
          (TransposeB ? tile.column * s.ldb + k0 : k0 * s.ldb + tile.column),
      s.ldb, s.n - tile.column, k, p.packs_b);

  std::uint32_t const ring = shared_address(shared);
  auto const place_of = [=](int step) { return ring + static_cast<std::uint32_t>(step % stages * 2 * tile_bytes); };
  int const lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int const row0 = warp % (Side / warp_rows) * warp_rows, column0 = warp / (Side / warp_rows) * warp_columns;

  float sum[tiles_m][tiles_n][4] = {};
#pragma unroll
  for (int i = 0; i < stages - 1; ++i) {
    if (i < steps) {
      copy_a.next(place_of(i));
      copy_b.next(place_of(i) + tile_bytes);
    }
    commit_copies();
  }
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wait_copies<stages - 2>();
    __syncthreads();  // this step's tiles are there for all threads, and all are done with those of the last step
    if (step + stages - 1 < steps) {
      copy_a.next(place_of(step + stages - 1));
      copy_b.next(place_of(step + stages - 1) + tile_bytes);
    }
    commit_copies();
    std::uint32_t const tile_a = place_of(step), tile_b = tile_a + tile_bytes;
#pragma unroll
    for (int kk = 0; kk < depth; kk += 16) {
      std::uint32_t a[2][4], b[tiles_n / 2][4];  // a: of this row of tiles and the next; b: of two neighbouring tiles
      auto const load_a = [&](int i) {
        int const row = row0 + i * 16;
        load_fragments<TransposeA>(
            a[i % 2],
            tile_a + (TransposeA ? pack_place<length_a>(kk + (lane & 7) + (lane >> 4) * 8, row / 8 + (lane >> 3 & 1))
                                 : pack_place<length_a>(row + (lane & 15), kk / 8 + (lane >> 4))));
      };
#pragma unroll
      for (int j = 0; j < tiles_n / 2; ++j) {
        int const column = column0 + j * 16;
        load_fragments<!TransposeB>(
            b[j],
            tile_b + (TransposeB ? pack_place<length_b>(column + (lane & 7) + (lane >> 4) * 8, kk / 8 + (lane >> 3 & 1))
                                 : pack_place<length_b>(kk + (lane & 15), column / 8 + (lane >> 4))));
      }
      load_a(0);
#pragma unroll
      for (int i = 0; i < tiles_m; ++i) {
        if (i + 1 < tiles_m) load_a(i + 1);
#pragma unroll
        for (int j = 0; j < tiles_n; ++j)
          multiply_16x8x16<T>(sum[i][j], a[i % 2], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }

  gemm_result<T> const result(p, tile);
  bool const pairs = p.parts ? s.n % 2 == 0 : p.pairs_y;
#pragma unroll
  for (int i = 0; i < tiles_m; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < tiles_n; ++j) {
        float const two[2] = {sum[i][j][half * 2], sum[i][j][half * 2 + 1]};
        result.put(row0 + i * 16 + half * 8 + lane / 4, column0 + j * 8 + lane % 4 * 2, two, pairs);
      }
}

// ---- multiply-adds
//
// A tile in shared memory is [depth][Side], whatever way it lies in global memory: single elements are copied, which
// demands no alignment. Where memory goes along k, a warp copies 8 steps of 4 lines, which have 32 different banks.

/// Copies tiles of a matrix to shared memory as [depth][Side], along k; what lies beyond the matrix becomes zero.
template <class T, int Side, int Depth, int Line, int Threads, bool AlongLines>
class element_copier {
 public:
  __device__ element_copier(T const* begin, std::int64_t ld, std::int64_t room, int depth)
      : from_(begin + (AlongLines ? first_k() * ld + first_i() : first_i() * ld + first_k())),
        ld_(ld),
        inside_(static_cast<int>(min(room, std::int64_t{Side}))),
        left_(depth) {}

  __device__ void next(std::uint32_t to) {
#pragma unroll
    for (int r = 0; r < count; ++r) {
      int const i = first_i() + (AlongLines ? 0 : r / 2 * lines_at_once),
                k = first_k() + (AlongLines ? r * steps_at_once : r % 2 * 8);
      T const* const from = from_ + (AlongLines ? r * steps_at_once * ld_ : r / 2 * lines_at_once * ld_ + r % 2 * 8);
      bool const is_inside = i < inside_ && k < left_;
      copy_async<sizeof(T)>(to + static_cast<std::uint32_t>((k * Line + i) * sizeof(T)), from,
                            is_inside ? static_cast<int>(sizeof(T)) : 0);
    }
    from_ += AlongLines ? Depth * ld_ : Depth;
    left_ -= Depth;
  }

 private:
  static_assert(Depth == 16);
  static constexpr int count = Side * Depth / Threads, lines_at_once = Threads / 8, steps_at_once = Threads / Side;

  __device__ static int first_i() {
    return static_cast<int>(threadIdx.x) % (AlongLines ? Side : Threads) / (AlongLines ? 1 : 8);
  }
  __device__ static int first_k() {
    return AlongLines ? static_cast<int>(threadIdx.x) / Side : static_cast<int>(threadIdx.x) % 8;
  }

  T const* from_;
  std::int64_t ld_;
  int inside_, left_;
};

template <class T, bool TransposeA, bool TransposeB, int Side>
__device__ void gemm_by_fma<T, TransposeA, TransposeB, Side>::operator()(unsigned char* shared) const {
  constexpr int own = Side / 16, packs = own / pack;  // rows and columns of a thread; packs of neighbours among them
  struct alignas(16) vector {
    T at[pack];
  };
  auto const& s = p.plan.each;
  gemm_tile const tile = gemm_tile::of(blockIdx.x, s.m, s.n, Side, p.tiling.k_parts);
  std::int64_t const k0 = tile.part * p.tiling.k_length;
  int const k = static_cast<int>(min(p.tiling.k_length, s.k - k0)), steps = (k + depth - 1) / depth;
  element_copier<T, Side, depth, line, threads, TransposeA> copy_a(
      p.a + p.plan.offset(p.plan.stride_a, tile.batch) + (TransposeA ? k0 * s.lda + tile.row : tile.row * s.lda + k0),
      s.lda, s.m - tile.row, k);
  element_copier<T, Side, depth, line, threads, !TransposeB> copy_b(
      p.b + p.plan.offset(p.plan.stride_b, tile.batch) +
          (TransposeB ? tile.column * s.ldb + k0 : k0 * s.ldb + tile.column),
      s.ldb, s.n - tile.column, k);

  // A warp has 4 x 8 threads of the 16 x 16: it reads 4 + 8 different vectors.
  int const lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  int const row0 = (warp / 2 * 4 + lane / 8) * pack, column0 = (warp % 2 * 8 + lane % 8) * pack;
  std::uint32_t const ring = shared_address(shared);
  auto const place_of = [](int step) { return step % stages * 2 * tile_bytes; };
  auto const copy = [&](int step) {
    copy_a.next(ring + static_cast<std::uint32_t>(place_of(step)));
    copy_b.next(ring + static_cast<std::uint32_t>(place_of(step) + tile_bytes));
  };

  T sum[own][own] = {};
  if (steps > 0) copy(0);
  commit_copies();
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    wait_copies<0>();
    __syncthreads();  // this step's tiles are there for all threads, and all are done with those of the last step
    if (step + 1 < steps) copy(step + 1);
    commit_copies();
    auto const* const tile_a = shared + place_of(step);
    auto const* const tile_b = tile_a + tile_bytes;
#pragma unroll
    for (int kk = 0; kk < depth; ++kk) {
      vector a[packs], b[packs];
#pragma unroll
      for (int g = 0; g < packs; ++g) {
        int const at = kk * line + g * 16 * pack;
        a[g] = __builtin_bit_cast(vector, *reinterpret_cast<uint4 const*>(tile_a + (at + row0) * sizeof(T)));
        b[g] = __builtin_bit_cast(vector, *reinterpret_cast<uint4 const*>(tile_b + (at + column0) * sizeof(T)));
      }
#pragma unroll
      for (int i = 0; i < own; ++i)
#pragma unroll
        for (int j = 0; j < own; ++j) sum[i][j] = fma(a[i / pack].at[i % pack], b[j / pack].at[j % pack], sum[i][j]);
    }
  }

  gemm_result<T> const result(p, tile);
  bool const together = p.parts ? s.n % pack == 0 : p.packs_y;
#pragma unroll
  for (int i = 0; i < own; ++i)
#pragma unroll
    for (int g = 0; g < packs; ++g) {
      T neighbours[pack];
#pragma unroll
      for (int j = 0; j < pack; ++j) neighbours[j] = sum[i][g * pack + j];
      result.put(i / pack * 16 * pack + row0 + i % pack, g * 16 * pack + column0, neighbours, together);
    }
}

}  // namespace neap::inline v0::detail
