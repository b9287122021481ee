// Tiles of attention on tensor cores: how the work is cut, rows of a tensor in shared memory, and the two products of a
// warp, of bf16 and f16 by mma.sync.m16n8k16 and of f32 by three products in tf32 (m16n8k8, cuda/mma.cuh).
#pragma once

#include <neap/core/element.hpp>
#include <neap/cuda/mma.cuh>

#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// How the work is cut for heads of at most Width elements: a warp has `mma_rows` times 16 rows of a tile of its own, and
/// meets tiles of `others` rows. No tile needs more than 99 KiB of shared memory, what sm_86 and sm_89 have.
template <class T, int Width>
struct attention_cut {
  static constexpr bool wide = sizeof(T) == 4;
  static constexpr int forward_mma_rows = wide || Width > 128 ? 1 : 2, forward_warps = 4;
  static constexpr int forward_others = wide ? (Width > 128 ? 16 : 32) : (Width > 64 ? 32 : 64);
  static constexpr int backward_mma_rows = 1, backward_warps = wide && Width > 128 ? 2 : 4;
  static constexpr int backward_others = wide ? (Width > 64 ? 16 : 32) : (Width > 128 ? 16 : Width > 64 ? 32 : 64);
  static constexpr int backward_stages = wide && Width > 128 ? 1 : 2;
  // Of dk and dv: the rest is another block's.
  static constexpr int max_columns = wide ? 64 : 128, columns_at_once = Width < 128 ? Width : max_columns;
};

#if defined(__CUDACC__)

/// Rows of Width elements in shared memory, their 16-byte chunks swizzled. `base` is a multiple of 128.
template <class T, int Width>
struct attention_tile {
  static constexpr int chunk = 16 / int{sizeof(T)}, chunks = Width / chunk;
  static constexpr std::uint32_t row_bytes = Width * sizeof(T);
  std::uint32_t base;

  __device__ std::uint32_t at(int row, int of_row) const {
    return base + 16 * static_cast<std::uint32_t>(swizzled<chunks>(row, of_row));
  }
  /// at(row + rows, of_row + 2 * pair) from at(row, of_row), for rows a multiple of 8 and of_row 0 or 1: a swizzle changes
  /// the low bits of a chunk's number alone. One exclusive or, the rest are constants.
  __device__ static std::uint32_t moved(std::uint32_t at, int rows, int pair) {
    constexpr int swizzled_pairs = chunks % 8 == 0 ? 4 : 2;
    return (at ^ (32u * static_cast<std::uint32_t>(pair % swizzled_pairs))) +
           32u * static_cast<std::uint32_t>(pair / swizzled_pairs * swizzled_pairs) +
           static_cast<std::uint32_t>(rows) * row_bytes;
  }
  /// Bytes of chunk c that hold columns below `columns`.
  __device__ static int valid_bytes(int columns, int c) {
    return max(0, min(16, (columns - c * chunk) * int{sizeof(T)}));
  }
  /// Rows [0, Rows) from `from` on; those from `left` on, and columns from `columns` on, are zeros. The caller commits.
  template <int Rows, int Threads>
  __device__ void load(T const* from, std::int64_t stride, std::int64_t left, int columns, bool packs) const {
    static_assert(Rows * chunks % Threads == 0, "each thread copies as many chunks");
    int const n = static_cast<int>(left < Rows ? left : Rows), thread = static_cast<int>(threadIdx.x);
    if (packs) {
      if constexpr (Threads % chunks == 0) {
        constexpr int rows_at_once = Threads / chunks;
        int const c = thread % chunks, row = thread / chunks, bytes = valid_bytes(columns, c);
        T const* source = from + row * stride + c * chunk;
        std::int64_t const step = rows_at_once * stride;
#pragma unroll
        for (int i = 0; i < Rows / rows_at_once; ++i, source += step) {
          int const valid = row + i * rows_at_once < n ? bytes : 0;
          copy_async<16>(at(row + i * rows_at_once, c), source, valid);
        }
      } else {
#pragma unroll
        for (int i = 0; i < Rows * chunks / Threads; ++i) {
          int const place = i * Threads + thread, row = place / chunks, c = place % chunks;
          copy_async<16>(at(row, c), from + row * stride + c * chunk, row < n ? valid_bytes(columns, c) : 0);
        }
      }
      return;
    }
#pragma unroll 1
    for (int place = thread; place < Rows * chunks; place += Threads) {
      int const row = place / chunks, c = place % chunks;
      struct alignas(16) {
        T of[chunk];
      } pack;
#pragma unroll
      for (int j = 0; j < chunk; ++j)
        pack.of[j] = row < n && c * chunk + j < columns ? from[row * stride + c * chunk + j] : T(0.f);
      uint4 const v = __builtin_bit_cast(uint4, pack);
      asm volatile("st.shared.v4.b32 [%0], {%1,%2,%3,%4};" ::"r"(at(row, c)), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                   : "memory");
    }
  }
};

/// Fragments of products whose elements are T: `depth` of the inner axis are multiplied at once, 32 bytes of them. A
/// fragment is read at a lane's place in the first one of its tile (first_...), moved by constants.
template <class T>
struct attention_fragments {
  static constexpr int depth = 16;
  struct left {
    std::uint32_t of[4];
  };
  struct right {  // two tiles of 8 columns
    std::uint32_t of[4];
  };
  struct column_places {
    std::uint32_t at;
  };

  template <class Tile>
  __device__ static std::uint32_t first_rows(Tile const& x, int row, int lane) {
    return x.at(row + lane % 16, lane / 16);
  }
  template <class Tile>
  __device__ static left rows(Tile const&, std::uint32_t first, int row, int step) {
    left a;
    load_matrices(a.of, Tile::moved(first, row, step));
    return a;
  }
  /// Columns are rows [row, row + 16) of the tile.
  template <class Tile>
  __device__ static std::uint32_t first_columns_of_rows(Tile const& y, int lane) {
    return y.at(lane % 8 + lane / 16 * 8, lane / 8 % 2);
  }
  template <class Tile>
  __device__ static right columns_of_rows(Tile const&, std::uint32_t first, int row, int step) {
    right b;
    load_matrices(b.of, Tile::moved(first, row, step));
    return b;
  }
  /// Columns are 16 columns of the tile, number `pair` of such, the inner axis its rows [row, row + depth).
  template <class Tile>
  __device__ static column_places first_columns(Tile const& y, int lane) {
    return {y.at(lane % 16, lane / 16)};
  }
  template <class Tile>
  __device__ static right columns(Tile const&, column_places const& first, int row, int pair) {
    right b;
    load_transposed(b.of, Tile::moved(first.at, row, pair));
    return b;
  }
  /// The step's part of accumulators [16, 8 n] as a left operand.
  template <int N>
  __device__ static left of_sums(float const (&s)[N][4], int step) {
    auto const &p = s[2 * step], &q = s[2 * step + 1];
    return {pack_two<T>(p[0], p[1]), pack_two<T>(p[2], p[3]), pack_two<T>(q[0], q[1]), pack_two<T>(q[2], q[3])};
  }
  __device__ static void multiply(float (&c)[4], left const& a, right const& b, int tile) {
    multiply_16x8x16<T>(c, a.of, b.of[2 * tile], b.of[2 * tile + 1]);
  }
};

/// f32 as pairs of tf32. The inner axis of of_sums and columns is permuted in the same way in both: thread t of a quad has
/// numbers 2t and 2t + 1 of it, as accumulators have them, in place of t and t + 4.
template <>
struct attention_fragments<float> {
  static constexpr int depth = 8;
  struct left {
    std::uint32_t high[4], low[4];
  };
  struct right {
    float of[4];
  };
  struct column_places {
    std::uint32_t at[2];  // of rows 2t and 2t + 1
  };
  __device__ static left split(float x0, float x1, float x2, float x3) {
    tf32_pair const p[4] = {split_tf32(x0), split_tf32(x1), split_tf32(x2), split_tf32(x3)};
    return {{p[0].high, p[1].high, p[2].high, p[3].high}, {p[0].low, p[1].low, p[2].low, p[3].low}};
  }
  template <class Tile>
  __device__ static std::uint32_t first_rows(Tile const& x, int row, int lane) {
    return x.at(row + lane % 16, lane / 16);
  }
  template <class Tile>
  __device__ static left rows(Tile const&, std::uint32_t first, int row, int step) {
    std::uint32_t a[4];
    load_matrices(a, Tile::moved(first, row, step));
    return split(__uint_as_float(a[0]), __uint_as_float(a[1]), __uint_as_float(a[2]), __uint_as_float(a[3]));
  }
  template <class Tile>
  __device__ static std::uint32_t first_columns_of_rows(Tile const& y, int lane) {
    return y.at(lane % 8 + lane / 16 * 8, lane / 8 % 2);
  }
  template <class Tile>
  __device__ static right columns_of_rows(Tile const&, std::uint32_t first, int row, int step) {
    std::uint32_t b[4];
    load_matrices(b, Tile::moved(first, row, step));
    return {{__uint_as_float(b[0]), __uint_as_float(b[1]), __uint_as_float(b[2]), __uint_as_float(b[3])}};
  }
  template <class Tile>
  __device__ static column_places first_columns(Tile const& y, int lane) {
    std::uint32_t const in_chunk = 4 * static_cast<std::uint32_t>(lane / 4 % 4);
    return {{y.at(2 * (lane % 4), lane / 16) + in_chunk, y.at(2 * (lane % 4) + 1, lane / 16) + in_chunk}};
  }
  template <class Tile>
  __device__ static right columns(Tile const&, column_places const& first, int row, int pair) {
    right b;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      asm volatile("ld.shared.f32 %0, [%1];"
                   : "=f"(b.of[i])
                   : "r"(Tile::moved(first.at[i % 2], row, 2 * pair + i / 2))
                   : "memory");
    return b;
  }
  template <int N>
  __device__ static left of_sums(float const (&s)[N][4], int step) {
    return split(s[step][0], s[step][2], s[step][1], s[step][3]);
  }
  __device__ static void multiply(float (&c)[4], left const& a, right const& b, int tile) {
    tf32_pair const x = split_tf32(b.of[2 * tile]), y = split_tf32(b.of[2 * tile + 1]);
    multiply_16x8x8(c, a.low, x.high, y.high);
    multiply_16x8x8(c, a.high, x.low, y.low);
    multiply_16x8x8(c, a.high, x.high, y.high);
  }
};

/// s [16 M, N] += x y^T for rows [row, row + 16 M) of x and rows [0, N) of y.
template <class T, int Width, int M, int Tiles>
__device__ inline void add_products_by_rows(float (&s)[M][Tiles][4], attention_tile<T, Width> x, int row,
                                            attention_tile<T, Width> y, int lane) {
  using fragments = attention_fragments<T>;
  constexpr int steps = Width / fragments::depth;
  std::uint32_t const first_x = fragments::first_rows(x, row, lane),
                      first_y = fragments::first_columns_of_rows(y, lane);
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    typename fragments::left a[M];
#pragma unroll
    for (int m = 0; m < M; ++m) a[m] = fragments::rows(x, first_x, 16 * m, step);
#pragma unroll
    for (int n = 0; n < Tiles / 2; ++n) {
      auto const b = fragments::columns_of_rows(y, first_y, 16 * n, step);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        fragments::multiply(s[m][2 * n], a[m], b, 0);
        fragments::multiply(s[m][2 * n + 1], a[m], b, 1);
      }
    }
  }
}

/// o [16 M, C] += s y for columns [column, column + C) of y, where column is a multiple of 128 bytes; s [16 M, N] are
/// accumulators.
template <class T, int Width, int M, int Tiles, int Columns>
__device__ inline void add_products_of_sums(float (&o)[M][Columns][4], float const (&s)[M][Tiles][4],
                                            attention_tile<T, Width> y, int column, int lane) {
  using fragments = attention_fragments<T>;
  auto const first =
      fragments::first_columns(attention_tile<T, Width>{y.base + column * std::uint32_t{sizeof(T)}}, lane);
#pragma unroll
  for (int step = 0; step < 8 * Tiles / fragments::depth; ++step) {
    typename fragments::left a[M];
#pragma unroll
    for (int m = 0; m < M; ++m) a[m] = fragments::of_sums(s[m], step);
#pragma unroll
    for (int n = 0; n < Columns / 2; ++n) {
      auto const b = fragments::columns(y, first, step * fragments::depth, n);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        fragments::multiply(o[m][2 * n], a[m], b, 0);
        fragments::multiply(o[m][2 * n + 1], a[m], b, 1);
      }
    }
  }
}

/// Columns `column` and the next of a row of `columns`.
template <class T>
__device__ inline void store_two(T* row, int column, int columns, float first, float second, bool pairs) {
  if (pairs && column + 1 < columns) {
    if constexpr (sizeof(T) == 4) *reinterpret_cast<float2*>(row + column) = make_float2(first, second);
    else *reinterpret_cast<std::uint32_t*>(row + column) = pack_two<T>(first, second);
    return;
  }
  if (column < columns) row[column] = T(first);
  if (column + 1 < columns) row[column + 1] = T(second);
}

/// 2^x; 0 for -inf.
__device__ inline float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/// A sum or maximum over the four threads that have a row's columns.
template <class Op>
__device__ inline float over_quad(float x, Op const& op) {
  x = op(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return op(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

#endif

}}}  // namespace neap::v0::detail
