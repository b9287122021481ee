#include <neap/backend/gemm.hpp>

#include "../support/sanitized.hpp"

#include <neap/core/philox.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

namespace {

template <class T>
std::vector<T> numbers(std::int64_t n, std::uint64_t seed) {
  neap::random_stream draw{seed};
  std::vector<T> v(static_cast<std::size_t>(n));
  for (auto& x : v) x = static_cast<T>(draw.uniform() - 0.5f);
  return v;
}

template <class T>
void check(neap::gemm_shape s, T alpha, T beta) {
  CAPTURE(s.m);
  CAPTURE(s.n);
  CAPTURE(s.k);
  auto const rows_a = s.transpose_a ? s.k : s.m, rows_b = s.transpose_b ? s.n : s.k;
  auto a = numbers<T>(rows_a * s.lda + 3, 1), b = numbers<T>(rows_b * s.ldb + 3, 2), c = numbers<T>(s.m * s.ldc + 3, 3);
  auto const original = c;
  auto const element = sizeof(T) == 4 ? neap::dtype::f32 : neap::dtype::f64;
  std::vector<std::byte> workspace(static_cast<std::size_t>(neap::gemm_workspace(s, element)) + 64);
  neap::host_backend one{1}, three{3};
  neap::gemm(one, s, alpha, a.data(), b.data(), beta, c.data(), workspace.data());
  double worst = 0;
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < s.k; ++k)
        sum += double(s.transpose_a ? a[k * s.lda + i] : a[i * s.lda + k]) *
               double(s.transpose_b ? b[j * s.ldb + k] : b[k * s.ldb + j]);
      double const want = double(alpha) * sum + double(beta) * double(original[i * s.ldc + j]);
      worst = std::max(worst, std::abs(want - double(c[i * s.ldc + j])));
    }
  CHECK(worst < (sizeof(T) == 4 ? 2e-6 : 1e-14) * double(s.k + 10));
  // The same bits with other threads and other addresses.
  auto again = original;
  std::vector<T> a1(a.size() + 1), b1(b.size() + 1);
  std::copy(a.begin(), a.end(), a1.begin() + 1);
  std::copy(b.begin(), b.end(), b1.begin() + 1);
  neap::gemm(three, s, alpha, a1.data() + 1, b1.data() + 1, beta, again.data(), workspace.data());
  CHECK(std::memcmp(c.data(), again.data(), c.size() * sizeof(T)) == 0);
}

}  // namespace

TEST_CASE("gemm agrees with the definition, on any number of threads and at any address") {
  neap::random_stream draw{42};
  for (int i = 0; i < neap::testing::cases(24); ++i) {
    auto s = neap::gemm_shape::dense(1 + draw.below(70), 1 + draw.below(70), 1 + draw.below(70), draw.below(2),
                                     draw.below(2));
    s.lda += draw.below(3), s.ldb += draw.below(3), s.ldc += draw.below(3);
    check<float>(s, 1.f, 0.f);
    check<double>(s, 0.5, 1.0);
  }
  check<float>(neap::gemm_shape::dense(1, 1, 1), 1.f, 1.f);
  check<float>(neap::gemm_shape::dense(3, 2, 0), 1.f, 0.f);
}

TEST_CASE("gemm cuts rows, columns and long inner extents") {
  check<float>(neap::gemm_shape::dense(300, 65, 130), 1.f, 0.f);
  check<float>(neap::gemm_shape::dense(33, 700, 130, true, false), 1.f, 1.f);
  check<float>(neap::gemm_shape::dense(24, 20, 9000, true, false), 1.f, 1.f);
  check<double>(neap::gemm_shape::dense(16, 40, 8192, false, true), 1.0, 0.0);
  CHECK(neap::gemm_workspace(neap::gemm_shape::dense(24, 20, 9000), neap::dtype::f32) > 0);
  CHECK(neap::gemm_workspace(neap::gemm_shape::dense(1024, 1024, 1024), neap::dtype::f32) == 0);
}

TEST_CASE("large products: every transposition, edges of tiles and blocks, rows further apart, sums onto C") {
  neap::random_stream draw{43};
  for (int i = 0; i < neap::testing::cases(12); ++i) {
    auto s = neap::gemm_shape::dense(100 + draw.below(400), 100 + draw.below(300), 250 + draw.below(300), i & 1, i & 2);
    s.lda += draw.below(20), s.ldb += draw.below(20), s.ldc += draw.below(20);
    check<float>(s, 1.f, i & 4 ? 1.f : 0.f);
  }
  check<float>(neap::gemm_shape::dense(32, 1100, 64), 1.f, 0.f);
  check<float>(neap::gemm_shape::dense(700, 33, 257, false, true), 1.f, 1.f);
}

TEST_CASE("a part of a product has the bits that it has in the whole, on any number of threads") {
  neap::random_stream draw{43};
  int cut = 0;
  for (int i = 0; i < neap::testing::cases(40); ++i) {
    std::int64_t const longest = 1 << (7 + draw.below(6));
    std::int64_t m = longest + draw.below(50), n = 1 + draw.below(300), k = 1 + draw.below(150);
    if (draw.below(2)) std::swap(m, n);
    auto s = neap::gemm_shape::dense(m, n, k, draw.below(2), draw.below(2));
    auto const a = numbers<float>(m * k, 1), b = numbers<float>(k * n, 2);
    std::vector<std::byte> workspace(static_cast<std::size_t>(neap::gemm_workspace(s, neap::dtype::f32)) + 64);
    std::vector<float> whole(static_cast<std::size_t>(m * n)), parts(whole.size());
    neap::host_backend one{1}, three{3};
    neap::gemm(one, s, 1.f, a.data(), b.data(), 0.f, whole.data(), workspace.data());
    auto const wanted = 1 + draw.below(6);
    auto const p = neap::gemm_parts::of(s, wanted);
    CHECK(p.count <= wanted);
    CHECK(neap::gemm_parts::most(s) >= 1);
    CHECK(neap::gemm_parts::of(s, neap::gemm_parts::most(s)).length >= std::min<std::int64_t>(p.rows ? m : n, 64));
    CHECK(p.length * p.count >= (p.rows ? m : n));
    CHECK(p.length * (p.count - 1) < (p.rows ? m : n));
    cut += p.count > 1;
    for (std::int64_t j = p.count; j-- > 0;)
      neap::gemm_part(three, s, p, j, a.data(), b.data(), parts.data() + p.begin(j) * (p.rows ? n : 1),
                      workspace.data());
    CHECK(std::memcmp(whole.data(), parts.data(), whole.size() * sizeof(float)) == 0);
  }
  CHECK(cut >= (neap::testing::sanitized ? 1 : 8));
}

TEST_CASE("large f32 products are as exact as sums of f32 products one by one, of numbers of any size") {
  neap::random_stream draw{44};
  for (int i = 0; i < neap::testing::cases(16); ++i) {
    std::int64_t const m = 64 + draw.below(120), n = 64 + draw.below(200), k = 400 + draw.below(900);
    auto const s = neap::gemm_shape::dense(m, n, k, draw.below(2), draw.below(2));
    auto a = numbers<float>(m * k, 10 + static_cast<std::uint64_t>(i)), b = numbers<float>(k * n, 3);
    // Of one size, of many sizes, all small, all large.
    for (auto* v : {&a, &b})
      for (auto& x : *v)
        x = i % 4 == 0   ? x
            : i % 4 == 1 ? std::ldexp(x, static_cast<int>(draw.below(60)) - 30)
            : i % 4 == 2 ? std::ldexp(x, -45)
                         : std::ldexp(x, 50);
    std::vector<float> c(static_cast<std::size_t>(m * n));
    neap::host_backend backend{2};
    neap::gemm(backend, s, 1.f, a.data(), b.data(), 0.f, c.data());
    double worst = 0, worst_plain = 0;  // of the sum of the products' sizes
    for (std::int64_t row = 0; row < m; row += 7)
      for (std::int64_t column = 0; column < n; ++column) {
        double sum = 0, size = 0;
        float plain = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          float const x = a[static_cast<std::size_t>(s.transpose_a ? p * m + row : row * k + p)],
                      y = b[static_cast<std::size_t>(s.transpose_b ? column * k + p : p * n + column)];
          sum += double(x) * double(y), size += std::abs(double(x) * double(y));
          plain = std::fma(x, y, plain);
        }
        worst = std::max(worst, std::abs(double(c[static_cast<std::size_t>(row * n + column)]) - sum) / size);
        worst_plain = std::max(worst_plain, std::abs(double(plain) - sum) / size);
      }
    CAPTURE(i);
    CHECK(worst <= 1.5 * worst_plain);
  }
}

TEST_CASE("infinities, NaNs and numbers near the largest mean in large products what they mean in small ones") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  neap::random_stream draw{45};
  for (int i = 0; i < neap::testing::cases(24); ++i) {
    std::int64_t const m = 130 + draw.below(60), n = 130 + draw.below(60), k = 128 + draw.below(60);
    bool const ta = draw.below(2), tb = draw.below(2);
    auto const s = neap::gemm_shape::dense(m, n, k, ta, tb);
    auto a = numbers<float>(m * k, 1), b = numbers<float>(k * n, 2);
    for (auto* v : {&a, &b})
      for (std::int64_t j = draw.below(4); j-- > 0;) {
        float const odd[] = {inf, -inf, nan, 3e38f, -1e30f, 0.f};
        (*v)[static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(v->size())))] = odd[draw.below(6)];
      }
    for (float const beta : {0.f, 1.f}) {
      auto const start = numbers<float>(m * n, 5);
      auto c = start;
      neap::host_backend backend{2};
      neap::gemm(backend, s, 1.f, a.data(), b.data(), beta, c.data());
      int wrong = 0;
      for (std::int64_t row = 0; row < m; ++row)
        for (std::int64_t column = 0; column < n; ++column) {
          float sum = beta == 0 ? 0.f : start[static_cast<std::size_t>(row * n + column)];
          for (std::int64_t p = 0; p < k; ++p)
            sum = std::fma(a[static_cast<std::size_t>(ta ? p * m + row : row * k + p)],
                           b[static_cast<std::size_t>(tb ? column * k + p : p * n + column)], sum);
          float const got = c[static_cast<std::size_t>(row * n + column)];
          bool const same = std::isnan(sum)   ? std::isnan(got)
                            : std::isinf(sum) ? got == sum
                                              : std::abs(got - sum) <= 1e-5f * std::max(20.f, std::abs(sum));
          wrong += !same;
        }
      CAPTURE(i);
      CHECK(wrong == 0);
      // And on any number of threads they are the same bits.
      auto again = start;
      neap::host_backend three{3};
      neap::gemm(three, s, 1.f, a.data(), b.data(), beta, again.data());
      CHECK(std::memcmp(again.data(), c.data(), c.size() * sizeof(float)) == 0);
    }
  }
}
