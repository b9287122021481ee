// f32 matrix products on vectors of 512 or 256 bits: C = op(A) op(B) (+ C), for builds that have them. On 512 bits
// OpenBLAS 0.3.21 reached 180 GFLOP/s of a core where this reaches what MKL does, and it needs whole panels, each of which
// packs the other operand anew. On 256 bits OpenBLAS is as quick, and only convolutions, which pack themselves, come here.
// The method is Goto's and van de Geijn's (2008): blocks of both operands are packed into vectors' order, and a tile of C
// stays in registers while one block of k runs through it.
//
// Each element of C is the same chain of fused multiply-adds however m and n are cut, because k alone is cut, always at
// the same places. So the cut may depend on the number of threads, and the result does not.
#pragma once

#include <neap/backend/vector16.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

#if defined(NEAP_VECTORS_OF_16)
#define NEAP_GEMM_TILES 1

struct gemm_tiles {
  using vec = vector16;
  static constexpr std::int64_t lanes = 16;
#if NEAP_VECTORS_OF_16 == 512
  static constexpr std::int64_t rows = 14, columns = 32;  // of a tile: 28 of 32 registers
#else
  static constexpr std::int64_t rows = 6, columns = 16;  // of a tile: 12 of 16 registers
#endif
  static constexpr std::int64_t k_block = 384, m_block = 16 * rows, n_block = 768;
  static constexpr std::size_t scratch_bytes = 4 * (m_block * k_block + n_block * k_block + 2 * 1024);

  struct operand {
    float const* data;
    std::int64_t ld;
    bool transposed;
    float const* at(std::int64_t row, std::int64_t column) const {
      return transposed ? data + column * ld + row : data + row * ld + column;
    }
  };

  /// C[m, n] (rows ldc apart) = A[m, k] B[k, n], or += that.
  static void run(std::int64_t m, std::int64_t n, std::int64_t k, operand a, operand b, bool accumulate, float* c,
                  std::int64_t ldc) {
    // In equal parts: a short last one would read and write C for little.
    std::int64_t const parts = std::max<std::int64_t>((k + k_block - 1) / k_block, 1),
                       step = ((k + parts - 1) / parts + 15) / 16 * 16;
    run(
        m, n, k, step,
        [&](std::int64_t i, std::int64_t p, std::int64_t mc, std::int64_t kc, float* to) {
          pack_a(a, i, p, mc, kc, to);
        },
        [&](std::int64_t p, std::int64_t j, std::int64_t kc, std::int64_t nc, float* to) {
          pack_b(b, p, j, kc, nc, to);
        },
        accumulate, c, ldc);
  }
  /// The same for operands that pack themselves, k being cut every k_step (at most k_block): left(i, p, mc, kc, to) packs
  /// A[i.., p..] in strips of `rows` rows, the last of what is left, and right(p, j, kc, nc, to) B[p.., j..] in panels of
  /// `columns` columns, the last filled up with zeros; each strip and panel k by k.
  template <class Left, class Right>
  static void run(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t k_step, Left const& left,
                  Right const& right, bool accumulate, float* c, std::int64_t ldc) {
    float* const packed_a = scratch();
    float* const packed_b = packed_a + m_block * k_block + 1024;
    for (std::int64_t p = 0; p < k; p += k_step) {
      std::int64_t const kc = std::min(k_step, k - p);
      for (std::int64_t j = 0; j < n; j += n_block) {
        std::int64_t const nc = std::min(n_block, n - j);
        right(p, j, kc, nc, packed_b);
        for (std::int64_t i = 0; i < m; i += m_block) {
          std::int64_t const mc = std::min(m_block, m - i);
          left(i, p, mc, kc, packed_a);
          block(mc, nc, kc, packed_a, packed_b, accumulate || p > 0, c + i * ldc + j, ldc);
        }
      }
    }
  }

  static vec load(float const* p) {
    vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(float* p, vec v) { std::memcpy(p, &v, sizeof v); }

  /// As `left` of run: a matrix.
  static void pack_left(operand a, std::int64_t i, std::int64_t p, std::int64_t mc, std::int64_t kc, float* to) {
    pack_a(a, i, p, mc, kc, to);
  }
  /// to[p * width + i] = from[i][p] for i < count, p < kc, count and width at most 16. Writes up to 16 floats a p, in
  /// rising order, so that what is beyond `width` is written over by who packs the next.
  static void pack_lines(float const* const* from, std::int64_t count, std::int64_t kc, std::int64_t width, float* to) {
    std::int64_t p = 0;
    for (; p + 16 <= kc; p += 16) {
      vec r[16];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < 16; ++i) r[i] = load(from[std::min(i, count - 1)] + p);
      transpose16(r);
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < 16; ++i) store(to + (p + i) * width, r[i]);
    }
    for (; p < kc; ++p)
      for (std::int64_t i = 0; i < count; ++i) to[p * width + i] = from[i][p];
  }

 private:
  // A packing buffer for each thread that multiplies, kept until the thread ends, as OpenBLAS keeps its own.
  static float* scratch() {
    struct release {
      void operator()(float* p) const { std::free(p); }
    };
    thread_local std::unique_ptr<float, release> const memory(
        static_cast<float*>(std::aligned_alloc(4096, (scratch_bytes + 4095) / 4096 * 4096)));
    if (!memory) throw std::bad_alloc();
    return memory.get();
  }

  // What will be packed next is prefetched: rows that are thousands of bytes apart escape the machine's own
  // prefetchers. An address beyond the operand does no harm, it is not read.

  // to[p * Width + i] = row i of `from` at p, for `count` rows (the others repeat the last), p < kc; rows are ld apart.
  // Writes up to 16 floats a p, in rising order, so that what is beyond Width is written over; Width is at most 16.
  static void pack_rows(float const* from, std::int64_t ld, std::int64_t count, std::int64_t kc, std::int64_t width,
                        float* to) {
    std::int64_t p = 0;
    for (; p + 16 <= kc; p += 16) {
      vec r[16];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < 16; ++i) {
        r[i] = load(from + std::min(i, count - 1) * ld + p);
        __builtin_prefetch(from + (i + count) * ld + p, 0, 2);
      }
      transpose16(r);
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < 16; ++i) store(to + (p + i) * width, r[i]);
    }
    for (; p < kc; ++p)
      for (std::int64_t i = 0; i < count; ++i) to[p * width + i] = from[i * ld + p];
  }

  static void pack_a(operand a, std::int64_t row, std::int64_t p0, std::int64_t mc, std::int64_t kc, float* to) {
    if (!a.transposed) {
      for (std::int64_t i = 0; i < mc; i += rows) {
        std::int64_t const count = std::min(rows, mc - i);
        pack_rows(a.at(row + i, p0), a.ld, count, kc, count, to + i * kc);
      }
      return;
    }
    // Whole rows of the source at a time, since they lie far apart.
    std::int64_t const whole = mc / rows * rows, rest = mc - whole;
    for (std::int64_t p = 0; p < kc; ++p) {
      float const* const from = a.at(row, p0 + p);
      float* const strip = to + p * rows;
      for (std::int64_t i = 0; i < whole; i += rows) {
        __builtin_prefetch(from + 4 * a.ld + i, 0, 2);
        std::memcpy(strip + i * kc, from + i, rows * sizeof(float));
      }
      for (std::int64_t l = 0; l < rest; ++l) to[whole * kc + p * rest + l] = from[whole + l];
    }
  }

  // Panels of `columns` columns; what lacks of the last is 0.
  static void pack_b(operand b, std::int64_t p0, std::int64_t column, std::int64_t kc, std::int64_t nc, float* to) {
    std::int64_t const whole = nc / columns * columns, rest = nc - whole;
    float const* const from = b.at(p0, column);
    if (b.transposed) {
      for (std::int64_t j = 0; j < whole; j += lanes)
        pack_rows(from + j * b.ld, b.ld, lanes, kc, columns, to + j / columns * columns * kc + j % columns);
    } else {
      constexpr std::int64_t few = 8;
      for (std::int64_t p = 0; p < kc; p += few) {
        std::int64_t const last = std::min(kc, p + few);
        for (std::int64_t j = 0; j < whole; j += columns)
          for (std::int64_t q = p; q < last; ++q) {
            float const* const x = from + q * b.ld + j;
            float* const y = to + j * kc + q * columns;
            __builtin_prefetch(x + few * b.ld, 0, 2);
            if constexpr (columns > lanes) __builtin_prefetch(x + few * b.ld + lanes, 0, 2);
            for (std::int64_t l = 0; l < columns; l += lanes) store(y + l, load(x + l));
          }
      }
    }
    if (rest == 0) return;
    std::int64_t const step_p = b.transposed ? 1 : b.ld, step_j = b.transposed ? b.ld : 1;
    for (std::int64_t p = 0; p < kc; ++p)
      for (std::int64_t l = 0; l < columns; ++l)
        to[whole * kc + p * columns + l] = l < rest ? from[p * step_p + (whole + l) * step_j] : 0.f;
  }

  static void block(std::int64_t mc, std::int64_t nc, std::int64_t kc, float const* a, float const* b, bool add,
                    float* c, std::int64_t ldc) {
    for (std::int64_t j = 0; j < nc; j += columns) {
      std::int64_t const width = std::min(columns, nc - j);
      std::int64_t i = 0;
      for (; i + rows <= mc; i += rows) tile<rows>(kc, a + i * kc, b + j * kc, add, c + i * ldc + j, ldc, width);
      if (i < mc)
        lower_tile(std::make_index_sequence<rows>{}, mc - i, kc, a + i * kc, b + j * kc, add, c + i * ldc + j, ldc,
                   width);
    }
  }
  template <std::size_t... R>
  static void lower_tile(std::index_sequence<R...>, std::int64_t count, std::int64_t kc, float const* a, float const* b,
                         bool add, float* c, std::int64_t ldc, std::int64_t width) {
    static_cast<void>(
        ((count == static_cast<std::int64_t>(R) && (tile<static_cast<int>(R)>(kc, a, b, add, c, ldc, width), true)) ||
         ...));
  }

  template <int R>
  [[gnu::noinline]] static void tile(std::int64_t kc, float const* a, float const* b, bool add, float* c,
                                     std::int64_t ldc, std::int64_t width) {
    if constexpr (R > 0) {
#if NEAP_VECTORS_OF_16 == 512
      using part = vector16;
#else
      using part = vector8;
#endif
      constexpr std::int64_t half = columns / 2;
      part sum[R][2] = {};
#pragma GCC unroll 4
      for (std::int64_t p = 0; p < kc; ++p, a += R, b += columns) {
        // C is fetched line by line: all at once would hold up the loads of a and b.
        __builtin_prefetch(c + (p >> 4) * ldc + (p & 8) * 2, 1);
        part b0, b1;
        std::memcpy(&b0, b, sizeof b0);
        std::memcpy(&b1, b + half, sizeof b1);
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) {
          // sum += a[i] * b, said so plainly because g++ 12 moves 28 sums between registers otherwise.
          part x;
          asm("vbroadcastss %1, %0" : "=v"(x) : "m"(a[i]));
          asm("vfmadd231ps %1, %2, %0" : "+v"(sum[i][0]) : "v"(x), "v"(b0));
          asm("vfmadd231ps %1, %2, %0" : "+v"(sum[i][1]) : "v"(x), "v"(b1));
        }
      }
      auto const put = [add](float* to, part s) {
        part before = {};
        if (add) std::memcpy(&before, to, sizeof before), s = before + s;
        std::memcpy(to, &s, sizeof s);
      };
      if (width == columns) {
#pragma GCC unroll 16
        for (int i = 0; i < R; ++i) {  // said twice, for -O2 keeps sums in memory where a loop picks them
          float* const to = c + i * ldc;
          put(to, sum[i][0]);
          put(to + half, sum[i][1]);
        }
        return;
      }
      float all[R][columns];
      std::memcpy(all, sum, sizeof all);
      for (int i = 0; i < R; ++i)
        for (std::int64_t l = 0; l < width; ++l) c[i * ldc + l] = add ? c[i * ldc + l] + all[i][l] : all[i][l];
    }
  }
};
#endif

}}}  // namespace neap::v0::detail
