// The two register tiles that convolutions are made of, written with explicit vectors and compiled for several
// instruction sets; the widest one that the machine has is taken when a convolution runs. Lanes hold consecutive pixels,
// so neither kernel transposes anything:
//
//     correlation:      y[a][pixel]  = start[a] + sum over channels c, taps t of  w[c][t][a] * x[c][pixel + offset[t]]
//     weight gradient:  out[a][b]    = sum over pixels of  g[a][pixel] * x[pixel + offset[b]]
//
// The order of every sum is fixed by the shapes and by the instruction set, never by threads or addresses.
#pragma once

#include <neap/core/config.hpp>

#include <cstddef>
#include <cstdint>

#if defined(__clang__)
#define NEAP_UNROLL _Pragma("unroll")
#else
#define NEAP_UNROLL _Pragma("GCC unroll 32")
#endif
#if defined(__CUDACC__)
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1675  // it does not know the host compiler's pragma, and hands it on
#endif

#if defined(__x86_64__)
#define NEAP_TARGET_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")))
#define NEAP_TARGET_AVX2 __attribute__((target("avx2,fma")))
#endif

namespace neap { inline namespace v0 {

/// What the machine's vectors are; kernels with explicit vectors choose by it.
enum class vector_set { narrow, avx2, avx512 };

inline vector_set machine_vectors() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    return vector_set::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return vector_set::avx2;
#endif
  return vector_set::narrow;
}

namespace detail {

// Keeps a vector in its register. GCC else folds the load into each of its uses, and a load across two cache lines
// costs twice.
template <class V>
NEAP_INLINE void hold(V& v) {
#if defined(__x86_64__) && !defined(__clang__)
  asm("" : "+v"(v));
#else
  static_cast<void>(v);
#endif
}

// A vector of `Lanes` elements: `type` in registers, `loose` in memory at any element's address.
template <class T, int Lanes>
struct lanes_of;
#define NEAP_LANES_OF(T, n)                                                                     \
  template <>                                                                                   \
  struct lanes_of<T, n> {                                                                       \
    typedef T type __attribute__((vector_size(n * sizeof(T))));                                 \
    typedef T loose __attribute__((vector_size(n * sizeof(T)), aligned(sizeof(T)), may_alias)); \
  };
NEAP_LANES_OF(float, 16)
NEAP_LANES_OF(float, 8)
NEAP_LANES_OF(float, 4)
NEAP_LANES_OF(double, 8)
NEAP_LANES_OF(double, 4)
NEAP_LANES_OF(double, 2)
#undef NEAP_LANES_OF

template <class T>
struct correlation_tile {
  std::int64_t channels, channel_stride;  // of x
  std::int64_t taps;
  std::int64_t const* offset;  // [taps], elements
  T const* weight;             // [channels][taps][A]
  T const* start;              // [A]
  T const* x;
  T* y;  // [A] rows of B * lanes elements
  std::int64_t y_stride;
};

template <class T, int Lanes, int A, int B>
NEAP_INLINE void run_tile(correlation_tile<T> const& tile) {
  using vec = typename lanes_of<T, Lanes>::type;
  using loose = typename lanes_of<T, Lanes>::loose;
  vec sum[A][B];
  NEAP_UNROLL
  for (int a = 0; a < A; ++a) {
    NEAP_UNROLL
    for (int b = 0; b < B; ++b) sum[a][b] = vec{} + tile.start[a];
  }
  T const* w = tile.weight;
  T const* channel = tile.x;
  std::int64_t const taps = tile.taps;
  std::int64_t const* const offset = tile.offset;
  for (std::int64_t c = 0; c < tile.channels; ++c, channel += tile.channel_stride)
    for (std::int64_t t = 0; t < taps; ++t, w += A) {
      T const* const x = channel + offset[t];
      vec pixels[B];
      NEAP_UNROLL
      for (int b = 0; b < B; ++b) {
        pixels[b] = *reinterpret_cast<loose const*>(x + b * Lanes);
        hold(pixels[b]);
      }
      NEAP_UNROLL
      for (int a = 0; a < A; ++a) {
        NEAP_UNROLL
        for (int b = 0; b < B; ++b) sum[a][b] += w[a] * pixels[b];
      }
    }
  NEAP_UNROLL
  for (int a = 0; a < A; ++a) {
    NEAP_UNROLL
    for (int b = 0; b < B; ++b) *reinterpret_cast<loose*>(tile.y + a * tile.y_stride + b * Lanes) = sum[a][b];
  }
}

template <class T>
struct weight_tile {
  std::int64_t units, pixels;  // pixels: a multiple of the lanes
  T const* g;                  // [units] x [A] rows of pixels
  std::int64_t g_unit, g_stride;
  T const* x;  // [units]
  std::int64_t x_unit;
  std::int64_t const* offset;  // [B]
  T* out;                      // [A] rows of B
  std::int64_t out_stride;
  bool accumulate;
};

template <class T, int Lanes, int A, int B>
NEAP_INLINE void run_tile(weight_tile<T> const& tile) {
  using vec = typename lanes_of<T, Lanes>::type;
  using loose = typename lanes_of<T, Lanes>::loose;
  vec sum[A][B];
  NEAP_UNROLL
  for (int a = 0; a < A; ++a) {
    NEAP_UNROLL
    for (int b = 0; b < B; ++b) sum[a][b] = vec{};
  }
  for (std::int64_t u = 0; u < tile.units; ++u) {
    T const* g = tile.g + u * tile.g_unit;
    T const* x[B];
    NEAP_UNROLL
    for (int b = 0; b < B; ++b) x[b] = tile.x + u * tile.x_unit + tile.offset[b];
    std::int64_t const row = tile.g_stride;
    for (std::int64_t q = 0; q < tile.pixels; q += Lanes) {
      vec pixels[B];
      NEAP_UNROLL
      for (int b = 0; b < B; ++b) {
        pixels[b] = *reinterpret_cast<loose const*>(x[b] + q);
        hold(pixels[b]);
      }
      NEAP_UNROLL
      for (int a = 0; a < A; ++a) {
        vec slope = *reinterpret_cast<loose const*>(g + a * row + q);
        hold(slope);
        NEAP_UNROLL
        for (int b = 0; b < B; ++b) sum[a][b] += slope * pixels[b];
      }
    }
  }
  // Lanes are added in a fixed tree: halves, quarters, ...; the transposed form does all B * A tiles at once.
  T part[A * B][Lanes];
  NEAP_UNROLL
  for (int a = 0; a < A; ++a) {
    NEAP_UNROLL
    for (int b = 0; b < B; ++b) *reinterpret_cast<loose*>(part[a * B + b]) = sum[a][b];
  }
  for (int i = 0; i < A * B; ++i) {
    T* const p = part[i];
    if constexpr (Lanes >= 8) {
      using half = typename lanes_of<T, Lanes / 2>::loose;
      *reinterpret_cast<half*>(p) = *reinterpret_cast<half const*>(p) + *reinterpret_cast<half const*>(p + Lanes / 2);
    }
    if constexpr (Lanes >= 16) {
      using quarter = typename lanes_of<T, Lanes / 4>::loose;
      *reinterpret_cast<quarter*>(p) =
          *reinterpret_cast<quarter const*>(p) + *reinterpret_cast<quarter const*>(p + Lanes / 4);
    }
    T const s = Lanes >= 4 ? (p[0] + p[2]) + (p[1] + p[3]) : p[0] + p[1];
    T& out = tile.out[(i / B) * tile.out_stride + i % B];
    out = tile.accumulate ? out + s : s;
  }
}

// How large the tiles of an instruction set are: A of 8, 4, 2, 1 rows (at most `rows`), B of 3, 2, 1. Doubles, which are for
// checking gradients, do without tiles of 512 bits: each set takes a compiler half a second.
template <class T>
struct tile_set {
  vector_set vectors;
  int lanes, rows;

  explicit tile_set(vector_set v)
      : vectors(v == vector_set::avx512 && sizeof(T) == 8 ? vector_set::avx2 : v),
        lanes(16 / sizeof(T)),
        rows(4) {
#if defined(__x86_64__)
    if (vectors == vector_set::avx512) lanes = 64 / sizeof(T), rows = 8;
    else if (vectors == vector_set::avx2) lanes = 32 / sizeof(T);
#endif
  }
  int rows_for(std::int64_t left) const {
    int a = rows;
    while (a > left) a /= 2;
    return a;
  }
  static constexpr int log2(int a) { return a >= 8 ? 3 : a >= 4 ? 2 : a >= 2 ? 1 : 0; }
};

// The tiles themselves. Code that needs sizes alone does not compile them.
template <class T>
struct tile_kernels {
  template <class Tile>
  using kernel = void (*)(Tile const&);
  kernel<correlation_tile<T>> correlation[4][3];  // [log2 A][B - 1]
  kernel<weight_tile<T>> weight[4][3];
};

template <class T, class Tile, int A, int B>
void tile_narrow(Tile const& t) {
  run_tile<T, 16 / sizeof(T), A, B>(t);
}
#if defined(__x86_64__)
template <class T, class Tile, int A, int B>
NEAP_TARGET_AVX2 void tile_avx2(Tile const& t) {
  run_tile<T, 32 / sizeof(T), A, B>(t);
}
template <class T, class Tile, int A, int B>
NEAP_TARGET_AVX512 void tile_avx512(Tile const& t) {
  run_tile<T, 64 / sizeof(T), A, B>(t);
}
#endif

#define NEAP_TILE_ROW(f, Tile, a) \
  { &f<T, Tile, a, 1>, &f<T, Tile, a, 2>, &f<T, Tile, a, 3> }
#define NEAP_TILE_TABLE(f, Tile, most) \
  { NEAP_TILE_ROW(f, Tile, 1), NEAP_TILE_ROW(f, Tile, 2), NEAP_TILE_ROW(f, Tile, 4), NEAP_TILE_ROW(f, Tile, most) }

template <class T>
tile_kernels<T> const& kernels_of(tile_set<T> const& tiles) {
#if defined(__x86_64__)
  if constexpr (sizeof(T) == 4) {
    static constexpr tile_kernels<T> avx512{NEAP_TILE_TABLE(tile_avx512, correlation_tile<T>, 8),
                                            NEAP_TILE_TABLE(tile_avx512, weight_tile<T>, 8)};
    if (tiles.vectors == vector_set::avx512) return avx512;
  }
  static constexpr tile_kernels<T> avx2{NEAP_TILE_TABLE(tile_avx2, correlation_tile<T>, 4),
                                        NEAP_TILE_TABLE(tile_avx2, weight_tile<T>, 4)};
  if (tiles.vectors == vector_set::avx2) return avx2;
#endif
  static_cast<void>(tiles);
  static constexpr tile_kernels<T> narrow{NEAP_TILE_TABLE(tile_narrow, correlation_tile<T>, 4),
                                          NEAP_TILE_TABLE(tile_narrow, weight_tile<T>, 4)};
  return narrow;
}
#undef NEAP_TILE_TABLE
#undef NEAP_TILE_ROW

}  // namespace detail
}}  // namespace neap::v0

#if defined(__CUDACC__)
#pragma nv_diagnostic pop
#endif
