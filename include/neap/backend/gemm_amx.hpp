// f32 matrix products on AMX, the matrix units of Intel's processors for bf16, at f32's accuracy. An f32 x is exactly
// the sum of three bf16, and of the nine products of two such sums the six largest are taken: what is left out is at most
// 2^-23 of a product, and 2^-27 on average, less than f32 rounds off. A unit does 16 times the multiply-adds of two
// 512-bit vectors, so six products of it take less than half the time of one by vectors (gemm_tiles.hpp). The splitting
// is Henry, Tang and Heinecke's (2019).
//
// Each element of C is a sum in one order however m and n are cut, as in gemm_tiles. The units take numbers below 2^-126
// as 0, parts of numbers included: a factor below 2^-110 has fewer bits here. Rows of A and columns of B that hold an
// infinity, a NaN or a number of 2^64 or more are multiplied by gemm_tiles, where such numbers mean what they should.
//
// Matrices of bf16 take one product in place of six, and no look at their numbers: a unit's products of bf16 are exact.
#pragma once

#include <neap/backend/gemm_tiles.hpp>
#include <neap/core/element.hpp>

#if defined(NEAP_GEMM_TILES) && NEAP_VECTORS_OF_16 == 512 && defined(__AMX_TILE__) && defined(__AMX_BF16__) && \
    defined(__linux__)
#define NEAP_GEMM_AMX 1

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>

#include <sys/syscall.h>
#include <unistd.h>

namespace neap { inline namespace v0 { namespace detail {

/// Several products in one call, so that A is packed once: C_g = start + sum over t of A_t B_gt, g < groups, t < terms.
struct gemm_series {
  std::int64_t groups = 1, terms = 1;
  std::int64_t a_term = 0, b_term = 0, b_group = 0, c_group = 0;  // elements from one to the next
  float const* start = nullptr;                                   // by row of C; nullptr: 0. Not with `accumulate`
  std::int64_t start_step = 0;
};

struct gemm_amx {
  using vec = gemm_tiles::vec;
  using operand = gemm_tiles::operand;
  typedef std::uint32_t bits __attribute__((vector_size(64)));

  // A tile has 16 rows of 64 bytes: 16 f32 of C, or 16 pairs of bf16. A block of C is two tiles by two.
  static constexpr std::int64_t side = 16, rows = 2 * side, columns = 2 * side, k_step = 32;
  static constexpr std::int64_t tile = 1024;  // bytes
  // A step of k has two tiles of each part of an operand: three parts of f32, one of bf16.
  template <int Parts>
  static constexpr std::int64_t bytes_of_step = Parts * 2 * tile;
  static constexpr std::int64_t step_bytes = bytes_of_step<3>;
  static constexpr std::int64_t k_block = 512, m_block = 25 * rows, n_block = 8 * columns;
  static constexpr std::uint32_t limit = 0x5f800000;  // 2^64

  /// Whether the system lets this process use the units; one request for all its threads.
  static bool usable() {
    static bool const granted = [] {
      constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
      return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
    }();
    return granted;
  }

  /// C[m, n] (rows ldc apart) = A[m, k] B[k, n], or += that, on the calling thread; or a series of such.
  static void run(std::int64_t m, std::int64_t n, std::int64_t k, operand a, operand b, bool accumulate, float* c,
                  std::int64_t ldc, gemm_series const& s = {}) {
    // Once C was added to, it is too late to look.
    bool const within = !accumulate || all_within(m, n, k, a, b, s);
    if (within && multiply(m, n, k, a, b, accumulate, c, ldc, s)) return;
    for (std::int64_t g = 0; g < s.groups; ++g, c += s.c_group) {
      if (s.start)
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) c[i * ldc + j] = s.start[i * s.start_step];
      for (std::int64_t t = 0; t < s.terms; ++t)
        by_stretches(m, n, k, a_of(a, s, t), b_of(b, s, g, t), accumulate || s.start || t > 0, c, ldc);
    }
  }

  /// A matrix of bf16 in place of `operand`.
  struct operand16 {
    bf16 const* data;
    std::int64_t ld;
    bool transposed;
    bf16 const* at(std::int64_t row, std::int64_t column) const {
      return transposed ? data + column * ld + row : data + row * ld + column;
    }
  };
  /// How far a product of bf16 matrices may extend: an operand is packed whole.
  static constexpr std::int64_t max_lines16 = 256, max_k16 = 512;

  /// C[m, n] (rows ldc apart) = A[m, k] B[k, n], or += that, on the calling thread, for m and n of at most max_lines16
  /// and k of at most max_k16. Sums are f32's; numbers below 2^-126 count as 0.
  static void run(std::int64_t m, std::int64_t n, std::int64_t k, operand16 a, operand16 b, bool accumulate, float* c,
                  std::int64_t ldc) {
    multiply16(m, n, k, {a}, b, accumulate, c, ldc);
  }
  /// The same for A = high + low (split16).
  static void run(std::int64_t m, std::int64_t n, std::int64_t k, operand16 high, operand16 low, operand16 b,
                  bool accumulate, float* c, std::int64_t ldc) {
    multiply16(m, n, k, {high, low}, b, accumulate, c, ldc);
  }

  /// x as the sum of two bf16, of which the second is at most 2^-7 of x: what is left out is at most 2^-15 of it. An
  /// infinity and a NaN are what the first one is.
  static void split16(float const* x, std::int64_t count, bf16* high, bf16* low) {
    typedef std::uint16_t halves __attribute__((vector_size(32)));
    auto const upper = [](bits v) { return __builtin_convertvector(v >> 16, halves); };
    auto const put = [&](vec v, std::int64_t i, std::size_t bytes) {
      bits const word = reinterpret_cast<bits>(v), head = word & 0xffff0000;
      bits const rest = reinterpret_cast<bits>(v - reinterpret_cast<vec>(head));
      bits const finite = (word & 0x7f800000) != 0x7f800000 ? bits{} - 1 : bits{};
      halves const first = upper(head), second = upper((rest + 0x8000) & finite);
      std::memcpy(static_cast<void*>(high + i), &first, bytes);
      std::memcpy(static_cast<void*>(low + i), &second, bytes);
    };
    std::int64_t i = 0;
    for (; i + side <= count; i += side) put(gemm_tiles::load(x + i), i, sizeof(halves));
    if (i < count) put(load_some(x + i, count - i), i, static_cast<std::size_t>(count - i) * sizeof(bf16));
  }

 private:
  static void multiply16(std::int64_t m, std::int64_t n, std::int64_t k, std::initializer_list<operand16> terms,
                         operand16 b, bool accumulate, float* c, std::int64_t ldc) {
    char* const packed_a = scratch();
    char* const packed_b = packed_a + max_lines16 * max_k16 * 2;
    std::int64_t const steps = (k + k_step - 1) / k_step, strip = steps * bytes_of_step<1>;
    configured const units;
    (b.transposed ? pack16<true, true> : pack16<false, false>)(b.data, b.ld, n, k, packed_b);
    for (auto const& a : terms) {
      (a.transposed ? pack16<false, true> : pack16<true, false>)(a.data, a.ld, m, k, packed_a);
      for (std::int64_t i = 0; i < m; i += rows)
        for (std::int64_t j = 0; j < n; j += columns)
          block<1>(std::min(rows, m - i), std::min(columns, n - j), steps, packed_a + i / rows * strip,
                   packed_b + j / columns * strip, accumulate, c + i * ldc + j, ldc, nullptr, 0);
      accumulate = true;
    }
  }

  static operand from(operand x, std::int64_t row, std::int64_t column) {
    return {x.at(row, column), x.ld, x.transposed};
  }
  static operand a_of(operand a, gemm_series const& s, std::int64_t t) {
    return {a.data + t * s.a_term, a.ld, a.transposed};
  }
  static operand b_of(operand b, gemm_series const& s, std::int64_t g, std::int64_t t) {
    return {b.data + g * s.b_group + t * s.b_term, b.ld, b.transposed};
  }

  // Stretches of rows, and of columns, that are alike.
  static void by_stretches(std::int64_t m, std::int64_t n, std::int64_t k, operand a, operand b, bool accumulate,
                           float* c, std::int64_t ldc) {
    for (std::int64_t i = 0, i1; i < m; i = i1) {
      bool const row = any_beyond(from(a, i, 0), 1, k);
      for (i1 = i + 1; i1 < m && any_beyond(from(a, i1, 0), 1, k) == row;) ++i1;
      for (std::int64_t j = 0, j1; j < n; j = j1) {
        bool const column = !row && any_beyond(from(b, 0, j), k, 1);
        for (j1 = row ? n : j + 1; j1 < n && any_beyond(from(b, 0, j1), k, 1) == column;) ++j1;
        operand const a_here = from(a, i, 0), b_here = from(b, 0, j);
        float* const c_here = c + i * ldc + j;
        if (row || column) gemm_tiles::run(i1 - i, j1 - j, k, a_here, b_here, accumulate, c_here, ldc);
        else multiply(i1 - i, j1 - j, k, a_here, b_here, accumulate, c_here, ldc, {});
      }
    }
  }

  static bool all_within(std::int64_t m, std::int64_t n, std::int64_t k, operand a, operand b, gemm_series const& s) {
    for (std::int64_t t = 0; t < s.terms; ++t) {
      if (any_beyond(a_of(a, s, t), m, k)) return false;
      for (std::int64_t g = 0; g < s.groups; ++g)
        if (any_beyond(b_of(b, s, g, t), k, n)) return false;
    }
    return true;
  }
  static bool any_beyond(operand x, std::int64_t row_count, std::int64_t column_count) {
    if (x.transposed) std::swap(row_count, column_count);
    bits largest{};
    for (std::int64_t i = 0; i < row_count; ++i) {
      float const* const row = x.data + i * x.ld;
      std::int64_t j = 0;
      for (; j + side <= column_count; j += side) largest = greater(largest, size_of(gemm_tiles::load(row + j)));
      if (j < column_count) largest = greater(largest, size_of(load_some(row + j, column_count - j)));
    }
    return is_beyond(largest);
  }
  // The key by which numbers are compared; NaN is the largest.
  static bits size_of(vec v) { return reinterpret_cast<bits>(v) & 0x7fffffff; }
  static bits greater(bits u, bits v) { return u > v ? u : v; }
  static bool is_beyond(bits const& largest) {
    std::uint32_t most = 0;
    for (int i = 0; i < 16; ++i) most = std::max(most, largest[i]);
    return most >= limit;
  }
  // The first `count` lanes, fewer than all; the others are 0.
  static vec load_some(float const* p, std::int64_t count) {
    vec v{};
    std::memcpy(&v, p, static_cast<std::size_t>(count) * sizeof(float));
    return v;
  }

  // False where a number of 2^64 or more was met; then C holds nothing of use.
  static bool multiply(std::int64_t m, std::int64_t n, std::int64_t k, operand a, operand b, bool accumulate, float* c,
                       std::int64_t ldc, gemm_series const& s) {
    char* const packed_a = scratch();
    char* const packed_b = packed_a + 6 * m_block * k_block;
    // In equal parts.
    auto const part = [](std::int64_t extent, std::int64_t most, std::int64_t unit) {
      std::int64_t const parts = (extent + most - 1) / most;
      return ((extent + parts - 1) / parts + unit - 1) / unit * unit;
    };
    std::int64_t const kc_most = part(k, k_block, k_step), mc_most = part(m, m_block, rows),
                       nc_most = part(n, n_block, columns);
    configured const units;
    for (std::int64_t t = 0; t < s.terms; ++t)
      for (std::int64_t p = 0; p < k; p += kc_most) {
        operand const a_t = a_of(a, s, t);
        bool const first = t == 0 && p == 0;
        std::int64_t const kc = std::min(kc_most, k - p), steps = (kc + k_step - 1) / k_step,
                           strip = steps * step_bytes;
        for (std::int64_t i = 0; i < m; i += mc_most) {
          std::int64_t const mc = std::min(mc_most, m - i);
          if (!(a.transposed ? pack<false, true> : pack<true, false>)(a_t.at(i, p), a.ld, mc, kc, packed_a))
            return false;
          for (std::int64_t g = 0; g < s.groups; ++g)
            for (std::int64_t j = 0; j < n; j += nc_most) {
              operand const b_t = b_of(b, s, g, t);
              std::int64_t const nc = std::min(nc_most, n - j);
              if (!(b.transposed ? pack<true, true> : pack<false, false>)(b_t.at(p, j), b.ld, nc, kc, packed_b))
                return false;
              for (std::int64_t ii = 0; ii < mc; ii += rows)
                for (std::int64_t jj = 0; jj < nc; jj += columns)
                  block<3>(std::min(rows, mc - ii), std::min(columns, nc - jj), steps, packed_a + ii / rows * strip,
                           packed_b + jj / columns * strip, accumulate || !first,
                           c + g * s.c_group + (i + ii) * ldc + j + jj, ldc,
                           first && s.start ? s.start + (i + ii) * s.start_step : nullptr, s.start_step);
            }
        }
      }
    return true;
  }

  static char* scratch() {
    constexpr std::size_t bytes = 6 * k_block * (m_block + n_block);
    struct release {
      void operator()(char* p) const { std::free(p); }
    };
    thread_local std::unique_ptr<char, release> const memory(static_cast<char*>(std::aligned_alloc(4096, bytes)));
    if (!memory) throw std::bad_alloc();
    return memory.get();
  }

  // Packing. An operand is a number of lines, rows of A or columns of B, of kc elements each. Two tiles of 16 lines and
  // their three parts hold 32 of k; what lacks of lines and of k is 0. The pair t of a line holds its elements t and
  // t + 16, so that nothing is shuffled between vectors.

  // x and y, each in three parts: part i of x in the lower halves of a row of tile i, of y in the upper ones. Rounded to
  // nearest twice; what is left then has at most 8 bits.
  static void put(vec x, vec y, char* to, bits& largest) {
    auto const word = [](vec v) { return reinterpret_cast<bits>(v); };
    auto const head = [&](vec v) { return (word(v) + 0x8000) & 0xffff0000; };
    auto const store = [&](int part, bits low, bits high) {
      gemm_tiles::store(reinterpret_cast<float*>(to + part * 2 * tile), reinterpret_cast<vec>((low >> 16) | high));
    };
    largest = greater(largest, greater(size_of(x), size_of(y)));
    bits const x0 = head(x), y0 = head(y);
    store(0, x0, y0);
    x -= reinterpret_cast<vec>(x0), y -= reinterpret_cast<vec>(y0);
    bits const x1 = head(x), y1 = head(y);
    store(1, x1, y1);
    x -= reinterpret_cast<vec>(x1), y -= reinterpret_cast<vec>(y1);
    store(2, word(x), word(y) & 0xffff0000);
  }

  // Lines lie `ld` apart and their elements side by side (`Along`), or the other way round. Tiles have a line in each
  // row (A) or in each column (B): `Crossed` where memory has it the other way. False where a number of 2^64 or more is.
  template <bool Along, bool Crossed>
  static bool pack(float const* from, std::int64_t ld, std::int64_t lines, std::int64_t kc, char* to) {
    bits largest{};
    std::int64_t const steps = (kc + k_step - 1) / k_step;
    auto const one = [&](std::int64_t l, std::int64_t p) {
      float const* const x = from + (Along ? l * ld + p : p * ld + l);
      char* const y = to + (l / rows * steps + p / k_step) * step_bytes + l % rows / side * tile;
      std::int64_t const count = std::min(side, lines - l), depth = std::min(k_step, kc - p);
      if (count == side && depth == k_step) pack_tiles<Along, Crossed, true>(x, ld, count, depth, y, largest);
      else pack_tiles<Along, Crossed, false>(x, ld, count, depth, y, largest);
    };
    // Whole rows of what is read at a time.
    if constexpr (Along) {
      for (std::int64_t l = 0; l < lines; l += side)
        for (std::int64_t p = 0; p < kc; p += k_step) one(l, p);
    } else {
      for (std::int64_t p = 0; p < kc; p += k_step)
        for (std::int64_t l = 0; l < lines; l += side) one(l, p);
    }
    return !is_beyond(largest);
  }

  // One tile of each part; `whole` where it has 16 lines of 32 elements.
  template <bool Along, bool Crossed, bool Whole>
  static void pack_tiles(float const* from, std::int64_t ld, [[maybe_unused]] std::int64_t count,
                         [[maybe_unused]] std::int64_t depth, char* to, bits& largest) {
    // Rows of memory and how many elements of each are there, for t and for t + 16.
    std::int64_t const apart = Along ? side : side * ld;
    auto const get = [&](std::int64_t row, std::int64_t second) {
      float const* const x = from + row * ld + second * apart;
      if constexpr (Whole) {
        __builtin_prefetch(x + (Along ? 2 * k_step : side), 0, 2);
        return gemm_tiles::load(x);
      } else {
        std::int64_t const depth_here = std::clamp<std::int64_t>(depth - second * side, 0, side),
                           there = Along ? depth_here : count;
        return row < (Along ? count : depth_here) ? load_some(x, there) : vec{};
      }
    };
    if constexpr (Crossed) {
      vec x[16], y[16];
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < side; ++r) x[r] = get(r, 0);
      transpose16(x);
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < side; ++r) y[r] = get(r, 1);
      transpose16(y);
#pragma GCC unroll 16
      for (std::int64_t r = 0; r < side; ++r) put(x[r], y[r], to + r * 64, largest);
    } else {
#pragma GCC unroll 4
      for (std::int64_t r = 0; r < side; ++r) put(get(r, 0), get(r, 1), to + r * 64, largest);
    }
  }

  // The same of bf16, without parts. A row of a tile has two neighbours in k side by side, as memory has them where lines
  // lie along k.
  template <bool Along, bool Crossed>
  static void pack16(bf16 const* from, std::int64_t ld, std::int64_t lines, std::int64_t k, char* to) {
    std::int64_t const steps = (k + k_step - 1) / k_step;
    std::int64_t const padded = (lines + side - 1) / side * side;
    for (std::int64_t l = 0; l < padded; l += side)
      for (std::int64_t p = 0; p < k; p += k_step) {
        bf16 const* const x = from + (Along ? l * ld + p : p * ld + l);
        char* const y = to + (l / rows * steps + p / k_step) * bytes_of_step<1> + l % rows / side * tile;
        std::int64_t const count = std::min(side, lines - l), depth = std::min(k_step, k - p);
        vec v[16];
#pragma GCC unroll 16
        for (std::int64_t r = 0; r < side; ++r) {
          if constexpr (Along) v[r] = r < count ? load_halves(x + r * ld, depth) : vec{};
          else v[r] = pair_of(x + 2 * r * ld, ld, count, depth - 2 * r);
        }
        if constexpr (Crossed) transpose16(v);
#pragma GCC unroll 16
        for (std::int64_t r = 0; r < side; ++r) gemm_tiles::store(reinterpret_cast<float*>(y + r * 64), v[r]);
      }
  }
  // 32 halves, the first `count` of them from memory, the others 0.
  static vec load_halves(bf16 const* p, std::int64_t count) {
    if (count == k_step) return gemm_tiles::load(reinterpret_cast<float const*>(p));
    vec v{};
    std::memcpy(&v, p, static_cast<std::size_t>(count) * sizeof(bf16));
    return v;
  }
  // 16 pairs of an element and the one `ld` on; `count` of them and `there` of each pair are in memory, the others 0.
  static vec pair_of(bf16 const* p, std::int64_t ld, std::int64_t count, std::int64_t there) {
    typedef std::uint16_t halves __attribute__((vector_size(32)));
    halves low{}, high{};
    if (count == side && there > 1) {  // of a size that the compiler knows
      std::memcpy(&low, p, sizeof low);
      std::memcpy(&high, p + ld, sizeof high);
      return reinterpret_cast<vec>(__builtin_convertvector(low, bits) | __builtin_convertvector(high, bits) << 16);
    }
    if (there > 0) std::memcpy(&low, p, static_cast<std::size_t>(count) * sizeof(bf16));
    if (there > 1) std::memcpy(&high, p + ld, static_cast<std::size_t>(count) * sizeof(bf16));
    return reinterpret_cast<vec>(__builtin_convertvector(low, bits) | __builtin_convertvector(high, bits) << 16);
  }

  // Tiles 0 to 3 are C's, 4 and 5 A's, 6 and 7 B's; all of 16 rows of 64 bytes. Free again when this ends, so that
  // the system need not keep them.
  struct configured {
    configured() {
      struct alignas(64) {
        std::uint8_t palette = 1, start_row = 0, reserved[14]{};
        std::uint16_t row_bytes[16]{};
        std::uint8_t row_count[16]{};
      } shape;
      for (int i = 0; i < 8; ++i) shape.row_bytes[i] = 64, shape.row_count[i] = 16;
      asm volatile("ldtilecfg %0" ::"m"(shape));
    }
    configured(configured const&) = delete;
    configured& operator=(configured const&) = delete;
    ~configured() { asm volatile("tilerelease" ::: "memory"); }
  };
  template <int T>
  static void load(void const* p, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(T) : "memory");
  }
  template <int T>
  static void store(void* p, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "i"(T) : "memory");
  }
  template <int T>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(T));
  }
  template <int C, int A, int B>
  static void add_product() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
  }

  template <int Parts>
  static void block(std::int64_t m, std::int64_t n, std::int64_t steps, char const* a, char const* b, bool add,
                    float* c, std::int64_t ldc, float const* start, std::int64_t start_step) {
    // By way of memory whose lines do not share one set of the cache, as rows of C may.
    alignas(64) float sums[rows * columns];
    auto const by = m > side   ? n > side ? block_of<2, 2, Parts> : block_of<2, 1, Parts>
                      : n > side ? block_of<1, 2, Parts>
                               : block_of<1, 1, Parts>;
    by(steps, a, b, sums, c, ldc);
    for (std::int64_t i = 0; i < m; ++i) {
      float* const to = c + i * ldc;
      float const* const row = sums + i * columns;
      float const more = start ? start[i * start_step] : 0.f;
      if (n == columns) {
        for (std::int64_t j = 0; j < columns; j += side) {
          vec sum = gemm_tiles::load(row + j);
          if (start) sum += more;
          gemm_tiles::store(to + j, add ? gemm_tiles::load(to + j) + sum : sum);
        }
      } else {
        for (std::int64_t j = 0; j < n; ++j) {
          float const sum = start ? row[j] + more : row[j];
          to[j] = add ? to[j] + sum : sum;
        }
      }
    }
  }

  // Down times Across tiles of sums of products; the lines of C are prefetched meanwhile.
  template <int Down, int Across, int Parts>
  [[gnu::noinline]] static void block_of(std::int64_t steps, char const* a, char const* b, float* sums, float* c,
                                         std::int64_t ldc) {
    auto const each_sum = [&](auto const& f) {
      auto const at = [&](std::int64_t i, std::int64_t j) { return sums + i * side * columns + j * side; };
      f.template operator()<0>(at(0, 0));
      if constexpr (Across > 1) f.template operator()<1>(at(0, 1));
      if constexpr (Down > 1) f.template operator()<2>(at(1, 0));
      if constexpr (Down > 1 && Across > 1) f.template operator()<3>(at(1, 1));
    };
    auto const load_a = [&](std::int64_t part) {
      load<4>(a + part * 2 * tile, 64);
      if constexpr (Down > 1) load<5>(a + part * 2 * tile + tile, 64);
    };
    auto const load_b = [&](std::int64_t part) {
      load<6>(b + part * 2 * tile, 64);
      if constexpr (Across > 1) load<7>(b + part * 2 * tile + tile, 64);
    };
    auto const multiply_add = [] {
      add_product<0, 4, 6>();
      if constexpr (Across > 1) add_product<1, 4, 7>();
      if constexpr (Down > 1) add_product<2, 5, 6>();
      if constexpr (Down > 1 && Across > 1) add_product<3, 5, 7>();
    };
    each_sum([]<int T>(float*) { zero<T>(); });
    for (std::int64_t i = 0; i < steps; ++i, a += bytes_of_step<Parts>, b += bytes_of_step<Parts>) {
      for (std::int64_t r = i * side * Down / steps; r < (i + 1) * side * Down / steps; ++r) {
        __builtin_prefetch(c + r * ldc, 1);
        __builtin_prefetch(c + r * ldc + side, 1);
      }
      if constexpr (Parts == 1) {
        load_a(0), load_b(0), multiply_add();
        continue;
      }
      load_a(2), load_b(0), multiply_add();
      load_a(1), multiply_add();
      load_b(1), multiply_add();
      load_a(0), multiply_add();
      load_b(0), multiply_add();
      load_b(2), multiply_add();
    }
    each_sum([]<int T>(float* at) { store<T>(at, columns * 4); });
  }
};

}}}  // namespace neap::v0::detail
#endif
