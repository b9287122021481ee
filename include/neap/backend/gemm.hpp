// C = alpha * op(A) * op(B) + beta * C, row-major, f32 and f64, on OpenBLAS. OpenBLAS runs single-threaded and our own
// threads call it for panels of C that the shape alone decides, so results have the same bits on any number of threads.
// f32 products of at least 2^21 multiply-adds and 32 in each extent run on our own tiles where the machine has vectors of
// 512 bits (gemm_tiles.hpp): of 91 such shapes and transpositions OpenBLAS 0.3.21 was quicker on three, by 6 % at most.
// Where it has matrix units, too, they take half the time of that or less (gemm_amx.hpp).
//
// The first call sets OpenBLAS to one thread for the whole process (openblas_set_num_threads(1)): its own threads
// would compete with the backend's, and would choose splits by their number. OpenBLAS keeps packing buffers of its own.
#pragma once

#include <neap/backend/gemm_amx.hpp>
#include <neap/backend/gemm_tiles.hpp>
#include <neap/backend/host.hpp>
#include <neap/core/error.hpp>
#include <neap/core/tensor_type.hpp>
#include <neap/core/units.hpp>

#include <cblas.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace neap { inline namespace v0 {

/// The extents of op(A) [m, k], op(B) [k, n] and C [m, n], and where their rows begin.
struct gemm_shape {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // A is stored [k, m], B is stored [n, k]
  std::int64_t lda = 0, ldb = 0, ldc = 0;         // elements from a stored row to the next

  static gemm_shape dense(std::int64_t m, std::int64_t n, std::int64_t k, bool ta = false, bool tb = false) {
    return {m, n, k, ta, tb, ta ? m : k, tb ? k : n, n};
  }
};

namespace detail {

inline void single_threaded_blas() {
  static bool const done = (openblas_set_num_threads(1), true);
  static_cast<void>(done);
}

// One OpenBLAS call on the calling thread. k = 0 scales C.
template <class T>
void gemm_panel(gemm_shape const& s, T alpha, T const* a, T const* b, T beta, T* c) {
  if (s.m <= 0 || s.n <= 0) return;
  if (s.k <= 0) {
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        T& x = c[i * s.ldc + j];
        x = beta == T(0) ? T(0) : beta * x;
      }
    return;
  }
  auto const ta = s.transpose_a ? CblasTrans : CblasNoTrans, tb = s.transpose_b ? CblasTrans : CblasNoTrans;
  auto const i = [](std::int64_t x) { return static_cast<blasint>(x); };
  // A leading dimension must cover the row even when there is one row only.
  auto const lda = i(std::max(s.lda, s.transpose_a ? s.m : s.k)), ldb = i(std::max(s.ldb, s.transpose_b ? s.k : s.n));
  auto const ldc = i(std::max(s.ldc, s.n));
  if constexpr (sizeof(T) == 4)
    cblas_sgemm(CblasRowMajor, ta, tb, i(s.m), i(s.n), i(s.k), alpha, a, lda, b, ldb, beta, c, ldc);
  else cblas_dgemm(CblasRowMajor, ta, tb, i(s.m), i(s.n), i(s.k), alpha, a, lda, b, ldb, beta, c, ldc);
}

// How C is cut. Panels are long enough that packing the other operand again costs little; k is cut only where C is too
// small to give work to several threads and k is long (the gradient of a narrow layer's weight), or so long that f32 sums
// of so many terms would lose digits: parts are added in double.
struct gemm_panels {
  bool rows = true;          // cut m, else n
  std::int64_t panels = 1;   // of equal length, a multiple of 16, the last may be shorter
  std::int64_t length = 0;   // rows or columns of a panel
  std::int64_t k_parts = 1;  // each of k_length
  std::int64_t k_length = 0;

  static constexpr std::int64_t worth_cutting = std::int64_t{1} << 20;  // multiply-adds: some 10 us of one core
  static constexpr std::int64_t k_part = std::int64_t{1} << 15;         // no longer than twice this, of a long k
  static constexpr std::int64_t panel_work = std::int64_t{1} << 21;

  static gemm_panels of(gemm_shape const& s) {
    gemm_panels p;
    p.rows = s.m >= s.n;
    std::int64_t const whole = p.rows ? s.m : s.n;
    p.length = std::max<std::int64_t>(whole, 1);
    p.k_length = std::max<std::int64_t>(s.k, 1);
    double const work = double(s.m) * double(s.n) * double(s.k);
    if (work < double(worth_cutting)) return p;
    // Every panel packs the other operand again: shorter ones were up to a fifth slower.
    auto const by_work = static_cast<std::int64_t>(std::min(64.0, work / double(panel_work)));
    // Products with A transposed are the gradients of weights, which are made in parts (gemm_parts, train/fuse_updates).
    // What decides is the shape, not the machine: programs may be compiled with other flags than their kernels.
    std::int64_t const medium = s.transpose_a ? 6 : 4;
    std::int64_t const by_length = whole <= 512 ? whole / 64 : whole <= 2048 ? medium : whole / 512;
    p.panels = std::clamp<std::int64_t>(by_length, 1, whole <= 512 ? 2 : std::max<std::int64_t>(2, by_work));
    bool const longest = s.k >= 4 * k_part && s.m * s.n <= 1024 * 1024;
    if (longest) p.panels = 1;
    if (longest || (p.panels == 1 && s.k >= 4096 && s.m * s.n <= 128 * 128)) {
      p.k_parts = std::clamp<std::int64_t>(s.k / 2048, 2, std::max<std::int64_t>(8, s.k / k_part));
      p.k_length = (s.k + p.k_parts - 1) / p.k_parts;
      p.k_parts = (s.k + p.k_length - 1) / p.k_length;
    }
    p.length = ((whole + p.panels - 1) / p.panels + 15) / 16 * 16;
    p.panels = (whole + p.length - 1) / p.length;
    return p;
  }
};

inline void check_gemm(gemm_shape const& s) {
  auto const most = static_cast<std::int64_t>(std::numeric_limits<blasint>::max());
  if (std::max({s.m, s.n, s.k, s.lda, s.ldb, s.ldc}) > most)
    throw_error({"gemm: an extent or stride exceeds what the BLAS counts with (32 bits)"});
}

#if defined(NEAP_GEMM_TILES) && NEAP_VECTORS_OF_16 == 512
// The shape and the factors decide alone.
inline bool suits_tiles(gemm_shape const& s, float alpha, float beta) {
  return alpha == 1 && (beta == 0 || beta == 1) && s.m >= 32 && s.n >= 32 && s.k >= 32 &&
         double(s.m) * double(s.n) * double(s.k) >= double(gemm_panels::panel_work);
}

// Whether matrix units are the quickest for a product: there are any, and no great part of their tiles would be empty.
inline bool suits_units([[maybe_unused]] gemm_shape const& s) {
#if defined(NEAP_GEMM_AMX)
  using units = gemm_amx;
  if (s.m < units::rows || s.n < units::columns || s.k < units::k_step) return false;
  auto const filled = [](std::int64_t x, std::int64_t unit) { return double(x + unit - 1 - (x + unit - 1) % unit); };
  return filled(s.m, units::side) * filled(s.n, units::side) * filled(s.k, units::k_step) <=
             1.4 * double(s.m) * double(s.n) * double(s.k) &&
         units::usable();
#else
  return false;
#endif
}

// C[m, n] = op(A) op(B), or += that, on the calling thread, as a part of the product `whole`, which decides how.
inline void tiled_product(gemm_shape const& whole, std::int64_t m, std::int64_t n, gemm_tiles::operand a,
                          gemm_tiles::operand b, bool add, float* c, std::int64_t ldc) {
#if defined(NEAP_GEMM_AMX)
  if (suits_units(whole)) return gemm_amx::run(m, n, whole.k, a, b, add, c, ldc);
#endif
  gemm_tiles::run(m, n, whole.k, a, b, add, c, ldc);
}

// C in a grid of one piece a thread, such that the least is packed again, and of two such grids the one that is cut less
// across: pieces pack their operands themselves, and twice as many of them cost 4 to 8 % on products of 10^8 steps.
inline void gemm_tiled(host_backend& backend, gemm_shape const& s, gemm_shape const& whole, float const* a,
                       float const* b, float beta, float* c) {
  std::int64_t const wanted = backend.threads();
  std::int64_t down = 1, across = wanted;
  double least = -1;
  for (std::int64_t i = 1; i <= wanted; ++i) {
    if (wanted % i != 0) continue;
    std::int64_t const others = wanted / i;
    double const packed = double(others) * double(s.m) + double(i) * double(s.n);
    if (least < 0 || packed <= least) least = packed, down = i, across = others;
  }
  auto const part = [](std::int64_t extent, std::int64_t parts, std::int64_t unit) {
    return std::max((extent + parts - 1) / parts + unit - 1, 4 * unit) / unit * unit;
  };
  constexpr std::int64_t rows_of_units = 32;
  std::int64_t const rows = part(s.m, down, suits_units(whole) ? rows_of_units : gemm_tiles::rows),
                     columns = part(s.n, across, gemm_tiles::columns);
  down = (s.m + rows - 1) / rows, across = (s.n + columns - 1) / columns;
  gemm_tiles::operand const left{a, s.lda, s.transpose_a}, right{b, s.ldb, s.transpose_b};
  backend.parallel_for(down * across, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t) {
      std::int64_t const i = t / across * rows, j = t % across * columns;
      tiled_product(whole, std::min(rows, s.m - i), std::min(columns, s.n - j), {left.at(i, 0), s.lda, s.transpose_a},
                    {right.at(0, j), s.ldb, s.transpose_b}, beta != 0, c + i * s.ldc + j, s.ldc);
    }
  });
}
#endif

// p cuts the product `whole`, of which s is a part: what is done with its elements is decided by the whole.
template <class T>
void gemm_cut(host_backend& backend, gemm_shape const& s, gemm_panels const& p,
              [[maybe_unused]] gemm_shape const& whole, T alpha, T const* a, T const* b, T beta, T* c,
              void* workspace) {
  if (p.k_parts > 1) {  // partial products side by side, then added in order
    T* const parts = static_cast<T*>(workspace);
    backend.parallel_for(p.k_parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::int64_t const k0 = i * p.k_length;
        gemm_shape piece = s;
        piece.k = std::min(p.k_length, s.k - k0);
        piece.ldc = s.n;
        gemm_panel(piece, alpha, a + k0 * (s.transpose_a ? s.lda : 1), b + k0 * (s.transpose_b ? 1 : s.ldb), T(0),
                   parts + i * s.m * s.n);
      }
    });
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        double sum = static_cast<double>(parts[i * s.n + j]);
        for (std::int64_t part = 1; part < p.k_parts; ++part)
          sum += static_cast<double>(parts[(part * s.m + i) * s.n + j]);
        T& x = c[i * s.ldc + j];
        x = static_cast<T>(beta == T(0) ? sum : sum + static_cast<double>(beta) * static_cast<double>(x));
      }
    return;
  }
#if defined(NEAP_GEMM_TILES) && NEAP_VECTORS_OF_16 == 512
  if constexpr (std::is_same_v<T, float>)
    if (suits_tiles(whole, alpha, beta)) return gemm_tiled(backend, s, whole, a, b, beta, c);
#endif
  if (p.panels == 1) return gemm_panel(s, alpha, a, b, beta, c);
  backend.parallel_for(p.panels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::int64_t const at = i * p.length;
      gemm_shape piece = s;
      (p.rows ? piece.m : piece.n) = std::min(p.length, (p.rows ? s.m : s.n) - at);
      if (p.rows) gemm_panel(piece, alpha, a + at * (s.transpose_a ? 1 : s.lda), b, beta, c + at * s.ldc);
      else gemm_panel(piece, alpha, a, b + at * (s.transpose_b ? s.ldb : 1), beta, c + at);
    }
  });
}

}  // namespace detail

/// Bytes of workspace that gemm needs: 0 unless C is small and k long.
inline bytes_t gemm_workspace(gemm_shape const& s, dtype element) {
  auto const p = detail::gemm_panels::of(s);
  return p.k_parts > 1 ? p.k_parts * s.m * s.n * size_of(element) : 0;
}

/// C = alpha * op(A) * op(B) + beta * C. With beta = 0, C is not read. Throws neap::error on extents beyond 32 bits.
///
///     gemm(backend, gemm_shape::dense(m, n, k), 1.f, a, b, 0.f, c, workspace);
template <class T>
void gemm(host_backend& backend, gemm_shape const& s, T alpha, T const* a, T const* b, T beta, T* c,
          void* workspace = nullptr) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "neap: gemm computes in f32 or f64");
  detail::check_gemm(s);
  detail::single_threaded_blas();
  detail::gemm_cut(backend, s, detail::gemm_panels::of(s), s, alpha, a, b, beta, c, workspace);
}

/// A product taken in parts of C, for who needs a part at a time, in the memory of one part: rows of C where it is at
/// least as long as wide, else columns. Each part has the bits that it has in the whole product.
struct gemm_parts {
  bool rows = true;
  std::int64_t count = 1;
  std::int64_t length = 0;  // rows or columns of each part; the last may have fewer

  /// About `wanted` parts, fewer where the product is not large enough. The shape alone decides.
  static gemm_parts of(gemm_shape const& s, std::int64_t wanted) {
    auto const p = detail::gemm_panels::of(s);
    gemm_parts parts{p.rows, 1, p.rows ? s.m : s.n};
    if (p.k_parts > 1 || p.panels == 1 || wanted <= 1) return parts;
    parts.length = (p.panels + wanted - 1) / wanted * p.length;
    parts.count = (parts.length - 1 + (p.rows ? s.m : s.n)) / parts.length;
    return parts;
  }
  /// The most parts that are about as quick as the whole on several threads: of two panels each.
  static std::int64_t most(gemm_shape const& s) {
    return std::max<std::int64_t>(detail::gemm_panels::of(s).panels / 2, 1);
  }
  /// Where part i begins and ends, in rows or columns of C.
  std::int64_t begin(std::int64_t i) const { return i * length; }
  std::int64_t end(gemm_shape const& s, std::int64_t i) const { return std::min((i + 1) * length, rows ? s.m : s.n); }
};

/// Part i of C = op(A) * op(B), written to c with rows of s.ldc elements. Workspace and errors are those of gemm.
template <class T>
void gemm_part(host_backend& backend, gemm_shape const& s, gemm_parts const& parts, std::int64_t i, T const* a,
               T const* b, T* c, void* workspace = nullptr) {
  detail::check_gemm(s);
  detail::single_threaded_blas();
  auto const begin = parts.begin(i), length = parts.end(s, i) - begin;
  auto piece = s;
  (parts.rows ? piece.m : piece.n) = length;
  auto panels = detail::gemm_panels::of(s);
  if (parts.count > 1) panels.panels = (length + panels.length - 1) / panels.length;
  detail::gemm_cut(backend, piece, panels, s, T(1), parts.rows ? a + begin * (s.transpose_a ? 1 : s.lda) : a,
                   parts.rows ? b : b + begin * (s.transpose_b ? s.ldb : 1), T(0), c, workspace);
}

}}  // namespace neap::v0
