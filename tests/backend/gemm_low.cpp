#include <neap/backend/gemm_low.hpp>
#include <neap/backend/kernels/matmul.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace neap;
using namespace neap_test;

namespace {

/// The largest error of a product beyond what rounding its elements once allows, in units of 2^-24 of the sums of absolute
/// products, a k.
double excess(tensor_ref const& a, tensor_ref const& b, tensor_ref const& y, matmul_options const& o,
              std::vector<double> const& before) {
  auto const av = values(a), bv = values(b), yv = values(y);
  auto const m = static_cast<std::size_t>(y.extent(-2)), n = static_cast<std::size_t>(y.extent(-1)),
             k = static_cast<std::size_t>(a.extent(o.transpose_a ? -2 : -1));
  std::size_t const batches = yv.size() / std::max<std::size_t>(m * n, 1);
  double worst = 0;
  for (std::size_t s = 0; s < batches; ++s)
    for (std::size_t i = 0; i < m; ++i)
      for (std::size_t j = 0; j < n; ++j) {
        double sum = o.accumulate ? before[(s * m + i) * n + j] : 0, size = std::abs(sum);
        for (std::size_t x = 0; x < k; ++x) {
          double const p = av[s * m * k + (o.transpose_a ? x * m + i : i * k + x)] *
                           bv[b.rank() == 2 ? (o.transpose_b ? j * k + x : x * n + j)
                                            : s * n * k + (o.transpose_b ? j * k + x : x * n + j)];
          sum += p, size += std::abs(p);
        }
        double const got = yv[(s * m + i) * n + j];
        double const rounding = y.element == dtype::bf16 ? std::ldexp(std::abs(sum), -8)
                                                         : std::max(std::ldexp(std::abs(sum), -11), 0x1p-25);
        double const over = std::abs(got - sum) - rounding * (1 + 1e-6);
        if (over > 0) worst = std::max(worst, over / (std::ldexp(size, -24) * static_cast<double>(k + 1)));
      }
  return worst;
}

}  // namespace

TEST_CASE("products of bf16 and f16: each element is rounded once, on any number of threads") {
  random_stream r{1};
  host_backend one{1}, two{2}, many{5};
  std::int64_t const sizes[] = {1, 2, 15, 16, 17, 31, 33, 64, 70, 130, 257, 300, 513};
  auto const size = [&](std::uint32_t most) { return sizes[r.below(most)]; };
  for (int round = 0; round < 90; ++round) {
    dtype const t = round % 2 ? dtype::f16 : dtype::bf16;
    matmul_options const o{r.below(2) == 0, r.below(2) == 0, r.below(4) == 0};
    std::int64_t const m = size(12), n = size(12), k = round % 3 ? size(10) : size(13);
    std::int64_t const batches = round % 5 == 0 && m * n * k < 100000 ? 3 : 1;
    bool const shared = r.below(2) == 0;
    auto const with = [&](std::int64_t rows, std::int64_t columns) {
      return batches == 1 ? shape{rows, columns} : shape{batches, rows, columns};
    };
    auto const a = random_dense(t, o.transpose_a ? with(k, m) : with(m, k), r, -1, 1);
    shape const sb = o.transpose_b ? shape{n, k} : shape{k, n};
    auto const b = random_dense(t, shared ? sb : with(sb[0], sb[1]), r, -1, 1);
    auto y = random_dense(t, with(m, n), r, -1, 1);
    CHECK(matmul_workspace(a, b, y, o) == 0);
    auto const before = values(y);
    owned again(y), more(y);
    matmul(one, a, b, y, o);
    matmul(two, a, b, again, o);
    matmul(many, a, b, more, o);
    CHECK(same_bits(y, again));
    CHECK(same_bits(y, more));
    INFO(m << " x " << n << " x " << k << " " << name_of(t));
    CHECK(excess(a, b, y, o, before) <= 2);
  }
}

TEST_CASE("products of bf16 and f16 of views, infinities and nothing") {
  random_stream r{2};
  host_backend one{1}, two{2};
  for (dtype t : {dtype::bf16, dtype::f16}) {
    // Heads of a packed [B, T, 3 C], and a result with room between its rows.
    owned packed{t, {2, 3, 40, 8}, {40 * 72, 8, 72, 1}, 2 * 40 * 72};
    randomize(packed, r);
    owned const dense{t, {2, 3, 40, 8}};
    assign(dense, values(packed));
    owned y{t, {2, 3, 40, 40}, {3 * 40 * 50, 40 * 50, 50, 1}, 6 * 40 * 50}, z{t, {2, 3, 40, 40}};
    matmul(one, packed, packed, y, {.transpose_b = true});
    matmul(two, dense, dense, z, {.transpose_b = true});
    CHECK(values(y) == values(z));
    // An infinity reaches its row and column alone; with a zero it makes a NaN.
    for (std::int64_t n : {8, 96}) {
      owned a{t, {n, n}}, b{t, {n, n}}, c{t, {n, n}};
      randomize(a, r, 1, 2), randomize(b, r, 1, 2);
      auto av = values(a), bv = values(b);
      auto const columns = static_cast<std::size_t>(n);
      av[3 * columns + 5] = std::numeric_limits<double>::infinity();
      bv[5 * columns + 2] = 0;
      assign(a, av), assign(b, bv);
      matmul(one, a, b, c);
      auto const cv = values(c);
      for (std::size_t i = 0; i < columns; ++i)
        for (std::size_t j = 0; j < columns; ++j) {
          double const x = cv[i * columns + j];
          CHECK((i != 3 ? std::isfinite(x) : j == 2 ? std::isnan(x) : std::isinf(x)));
        }
    }
    owned nothing{t, {3, 0}}, no_rows{t, {0, 4}}, zeros{t, {3, 4}};
    randomize(zeros, r);
    matmul(one, nothing, no_rows, zeros);
    CHECK(values(zeros) == std::vector<double>(12, 0.0));
  }
}

TEST_CASE("parts of products of bf16 and f16 have the bits of the whole") {
  random_stream r{3};
  host_backend one{1}, two{2};
  for (auto const& s : {gemm_shape::dense(1024, 96, 130, true), gemm_shape::dense(100, 1030, 64, true),
                        gemm_shape::dense(640, 640, 40), gemm_shape::dense(2100, 40, 33, false, true)})
    for (std::int64_t wanted : {1, 2, 3, 7, 16}) {
      owned a{dtype::bf16, {s.k * s.m}}, b{dtype::bf16, {s.k * s.n}};
      randomize(a, r), randomize(b, r);
      auto const *const pa = a.ref.as<bf16 const>(), *const pb = b.ref.as<bf16 const>();
      std::vector<bf16> whole(static_cast<std::size_t>(s.m * s.n)), joined(whole.size());
      low_gemm_part(one, s, {true, 1, s.m}, 0, pa, pb, whole.data());
      auto const parts = low_gemm_parts(s, wanted);
      CHECK(parts.count >= 1);
      CHECK((parts.count == 1 || parts.begin(parts.count - 1) < (parts.rows ? s.m : s.n)));
      for (std::int64_t i = 0; i < parts.count; ++i) {
        auto piece = s;
        std::int64_t const length = parts.end(s, i) - parts.begin(i);
        std::int64_t const rows = parts.rows ? length : s.m, columns = parts.rows ? s.n : length;
        std::vector<bf16> part(static_cast<std::size_t>(rows * columns));
        piece.ldc = columns;
        low_gemm_part(i % 2 ? one : two, piece, parts, i, pa, pb, part.data());
        for (std::int64_t row = 0; row < rows; ++row)
          for (std::int64_t column = 0; column < columns; ++column)
            joined[static_cast<std::size_t>((row + (parts.rows ? parts.begin(i) : 0)) * s.n + column +
                                            (parts.rows ? 0 : parts.begin(i)))] =
                part[static_cast<std::size_t>(row * columns + column)];
      }
      CHECK(std::memcmp(whole.data(), joined.data(), whole.size() * sizeof(bf16)) == 0);
    }
}
