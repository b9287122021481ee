// Sixteen f32 numbers: one register of 512 bits (AVX-512), or two of 256 (AVX2 with fused multiply-adds). What is written
// with them computes the same sums in the same order on both.
#pragma once

#include <neap/core/config.hpp>

#include <cstdint>
#include <cstring>

namespace neap { inline namespace v0 { namespace detail {

#if defined(__OPTIMIZE__) && !defined(__CUDACC__) && !defined(__SANITIZE_ADDRESS__)
#if defined(__AVX512F__)
#define NEAP_VECTORS_OF_16 512
#elif defined(__AVX2__) && defined(__FMA__)
#define NEAP_VECTORS_OF_16 256
#endif
#endif

#if defined(NEAP_VECTORS_OF_16)

/// A round of a transposition: of registers i and i + Distance, the first gets the even blocks of `Distance` elements of
/// both, the second the odd ones. V holds N floats, Index as many int.
template <class V, class Index, int Distance, int N>
NEAP_INLINE void swap_blocks(V (&r)[N]) {
#if !defined(__clang__)
  Index low{}, high{};
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    low[i] = i & Distance ? N + i - Distance : i;
    high[i] = i & Distance ? N + i : i + Distance;
  }
#endif
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) {
    if (i & Distance) continue;
    V const x = r[i], y = r[i + Distance];
#if defined(__clang__)
    V u, w;
    for (int l = 0; l < N; ++l) {
      u[l] = l & Distance ? y[l - Distance] : x[l];
      w[l] = l & Distance ? y[l] : x[l + Distance];
    }
    r[i] = u, r[i + Distance] = w;
#else
    r[i] = __builtin_shuffle(x, y, low);
    r[i + Distance] = __builtin_shuffle(x, y, high);
#endif
  }
}

#if NEAP_VECTORS_OF_16 == 512

typedef float vector16 __attribute__((vector_size(64)));
typedef int index16 __attribute__((vector_size(64)));

/// r[i][j] becomes r[j][i]: four rounds that each exchange blocks twice as large as the one before.
NEAP_INLINE void transpose16(vector16 (&r)[16]) {
  swap_blocks<vector16, index16, 1>(r);
  swap_blocks<vector16, index16, 2>(r);
  swap_blocks<vector16, index16, 4>(r);
  swap_blocks<vector16, index16, 8>(r);
}

#else

typedef float vector8 __attribute__((vector_size(32)));
typedef int index8 __attribute__((vector_size(32)));

struct vector16 {
  vector8 low, high;

  NEAP_INLINE float operator[](std::int64_t i) const { return i < 8 ? low[i] : high[i - 8]; }
  friend NEAP_INLINE vector16 operator+(vector16 x, vector16 y) { return {x.low + y.low, x.high + y.high}; }
  friend NEAP_INLINE vector16 operator-(vector16 x, vector16 y) { return {x.low - y.low, x.high - y.high}; }
  friend NEAP_INLINE vector16 operator*(float x, vector16 y) { return {x * y.low, x * y.high}; }
};

NEAP_INLINE void transpose8(vector8 (&r)[8]) {
  swap_blocks<vector8, index8, 1>(r);
  swap_blocks<vector8, index8, 2>(r);
  swap_blocks<vector8, index8, 4>(r);
}

/// r[i][j] becomes r[j][i]: quarters of 8 by 8 are transposed, and two of them change places.
NEAP_INLINE void transpose16(vector16 (&r)[16]) {
  vector8 a[8], b[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) a[i] = r[i].low, b[i] = r[8 + i].high;
  transpose8(a);
  transpose8(b);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i].low = a[i], r[8 + i].high = b[i];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) a[i] = r[i].high, b[i] = r[8 + i].low;
  transpose8(a);
  transpose8(b);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[8 + i].low = a[i], r[i].high = b[i];
}

#endif
#endif

}}}  // namespace neap::v0::detail
