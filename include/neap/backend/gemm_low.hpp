// Matrix products of bf16 and of f16 on the host: C = op(A) op(B) (+ C), row-major. Sums are f32's, and each element of C
// is rounded once, at the end. C is cut into pieces that the shape alone decides, a piece is one task, and its operands
// are widened to f32 on the way into buffers of the thread (as other products pack theirs), so that a product takes no
// workspace and has the same bits on any number of threads.
//
// Where the machine has matrix units (gemm_amx.hpp), products of bf16 run there, without widening. Products of two bf16
// are exact in f32, so the two ways differ in the order of sums and in numbers below 2^-126, which units take as 0: by at
// most k * 2^-23 * (sum of |a b|) + k * 2^-126 * (largest |a| + largest |b|) before an element is rounded.
#pragma once

#include <neap/backend/gemm.hpp>
#include <neap/core/element.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

/// How C is cut: every `side` rows and columns.
struct low_pieces {
  static constexpr std::int64_t most = 256, least = 64;
  std::int64_t side = most, down = 0, across = 0;

  /// As large as leaves several threads something to do.
  static low_pieces of(gemm_shape const& s) {
    low_pieces p;
    auto const cut = [&] { p.down = (s.m + p.side - 1) / p.side, p.across = (s.n + p.side - 1) / p.side; };
    for (cut(); p.side > least && p.down * p.across < 8; cut()) p.side /= 2;
    return p;
  }
  std::int64_t count() const { return down * across; }
};

template <class T>
void widen(T const* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]);
}
template <class T>
void narrow(float const* from, std::int64_t n, T* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] = T(from[i]);
}

template <class T>
struct low_product {
  static_assert(std::is_same_v<T, bf16> || std::is_same_v<T, f16>);
  static constexpr std::int64_t k_block = 512;

  gemm_shape s;
  low_pieces pieces;
  bool accumulate = false;

  low_product(gemm_shape const& shape, bool add) : s(shape), pieces(low_pieces::of(shape)), accumulate(add) {}

  /// Makes piece t of C; `c` is where C's element [row, column] belongs.
  void run(std::int64_t t, T const* a, T const* b, T* c, std::int64_t row = 0, std::int64_t column = 0) const {
    std::int64_t const i = t / pieces.across * pieces.side, j = t % pieces.across * pieces.side;
    std::int64_t const m = std::min(pieces.side, s.m - i), n = std::min(pieces.side, s.n - j);
    float* const sums = scratch();
    float* const wide = sums + low_pieces::most * low_pieces::most;
    T* const to = c + (i - row) * s.ldc + j - column;
    for (std::int64_t r = 0; r < m; ++r) {
      if (accumulate) widen(to + r * s.ldc, n, sums + r * n);
      else if (s.k <= 0) std::fill_n(sums + r * n, n, 0.f);
    }
    std::int64_t const parts = std::max<std::int64_t>((s.k + k_block - 1) / k_block, 1),
                       step = ((s.k + parts - 1) / parts + 31) / 32 * 32;
    for (std::int64_t p = 0; p < s.k; p += step) {
      std::int64_t const k = std::min(step, s.k - p);
      T const* const left = s.transpose_a ? a + p * s.lda + i : a + i * s.lda + p;
      T const* const right = s.transpose_b ? b + j * s.ldb + p : b + p * s.ldb + j;
      bool const add = accumulate || p > 0;
#if defined(NEAP_GEMM_AMX)
      if constexpr (std::is_same_v<T, bf16>)
        if (units()) {
          gemm_amx::run(m, n, k, gemm_amx::operand16{left, s.lda, s.transpose_a},
                        gemm_amx::operand16{right, s.ldb, s.transpose_b}, add, sums, n);
          continue;
        }
#endif
      float* const wide_b = wide + low_pieces::most * k_block;
      gemm_shape const piece = gemm_shape::dense(m, n, k, s.transpose_a, s.transpose_b);
      widen_matrix(left, s.lda, s.transpose_a ? k : m, s.transpose_a ? m : k, wide);
      widen_matrix(right, s.ldb, s.transpose_b ? n : k, s.transpose_b ? k : n, wide_b);
      product(piece, wide, wide_b, add, sums);
    }
    for (std::int64_t r = 0; r < m; ++r) narrow(sums + r * n, n, to + r * s.ldc);
  }

 private:
#if defined(NEAP_GEMM_AMX)
  static_assert(low_pieces::most <= gemm_amx::max_lines16 && k_block <= gemm_amx::max_k16);
  // Units have tiles to fill and to be configured for.
  bool units() const { return double(s.m) * double(s.n) * double(s.k) >= 1 << 15 && gemm_amx::usable(); }
#endif
  static void widen_matrix(T const* from, std::int64_t ld, std::int64_t rows, std::int64_t columns, float* to) {
    for (std::int64_t r = 0; r < rows; ++r) widen(from + r * ld, columns, to + r * columns);
  }
  static void product(gemm_shape const& p, float const* a, float const* b, bool add, float* c) {
#if defined(NEAP_GEMM_TILES) && NEAP_VECTORS_OF_16 == 512
    if (p.m > 0 && p.n > 0 && p.k > 0)
      return tiled_product(p, p.m, p.n, {a, p.lda, p.transpose_a}, {b, p.ldb, p.transpose_b}, add, c, p.ldc);
#endif
    gemm_panel<float>(p, 1.f, a, b, add ? 1.f : 0.f, c);
  }
  // Sums of a piece, and its operands as f32; kept until the thread ends, as packing buffers are.
  static float* scratch() {
    constexpr std::size_t count = low_pieces::most * (low_pieces::most + 2 * k_block);
    struct release {
      void operator()(float* p) const { std::free(p); }
    };
    thread_local std::unique_ptr<float, release> const memory(
        static_cast<float*>(std::aligned_alloc(4096, count * sizeof(float))));
    if (!memory) throw std::bad_alloc();
    return memory.get();
  }
};

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 {

/// Part i of C = op(A) * op(B) of bf16 or f16, written to c with rows of s.ldc elements, as gemm_part has it. No workspace.
template <class T>
void low_gemm_part(host_backend& backend, gemm_shape const& s, gemm_parts const& parts, std::int64_t i, T const* a,
                   T const* b, T* c) {
  detail::single_threaded_blas();
  detail::low_product<T> const whole(s, false);
  auto const& p = whole.pieces;
  // Parts begin where pieces do (low_gemm_parts), and a piece writes from where it is in C.
  std::int64_t const first = parts.begin(i) / p.side, last = (parts.end(s, i) + p.side - 1) / p.side;
  std::int64_t const along = last - first, other = parts.rows ? p.across : p.down;
  backend.parallel_for(along * other, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      std::int64_t const u = first + t / other, v = t % other;
      if (parts.rows) whole.run(u * p.across + v, a, b, c, parts.begin(i), 0);
      else whole.run(v * p.across + u, a, b, c, 0, parts.begin(i));
    }
  });
}
/// gemm_parts of a product of bf16 or f16: they begin where its pieces do.
inline gemm_parts low_gemm_parts(gemm_shape const& s, std::int64_t wanted) {
  auto parts = gemm_parts::of(s, wanted);
  if (parts.count == 1) return parts;
  std::int64_t const side = detail::low_pieces::of(s).side, whole = parts.rows ? s.m : s.n;
  parts.length = std::min((parts.length + side - 1) / side * side, whole);
  parts.count = (whole + parts.length - 1) / parts.length;
  return parts;
}

}}  // namespace neap::v0
