#include <neap/backend/kernels/attention.hpp>

#include <neap/core/philox.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

namespace {

using neap::extents;
using neap::shape;

// A [B, H, T, D] view into memory ordered [B, T, pitch], heads side by side: dense heads, or slices of a packed tensor.
template <class T>
struct view {
  shape dims;
  std::int64_t pitch;
  std::vector<T> data;
  view(shape d, std::int64_t extra, std::uint64_t seed) : dims(d), pitch(d[1] * d[3] + extra) {
    neap::random_stream draw{seed};
    data.resize(static_cast<std::size_t>(d[0] * d[2] * pitch));
    for (auto& x : data) x = static_cast<T>(2 * draw.uniform() - 1);
  }
  neap::tensor_ref ref() {
    return {data.data(),
            sizeof(T) == 2   ? neap::dtype::bf16
            : sizeof(T) == 4 ? neap::dtype::f32
                             : neap::dtype::f64,
            dims, extents{dims[2] * pitch, dims[3], pitch, 1}};
  }
  T& at(std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t d) {
    return data[static_cast<std::size_t>((b * dims[2] + t) * pitch + h * dims[3] + d)];
  }
};

template <class T>
void check(std::int64_t B, std::int64_t H, std::int64_t K, std::int64_t Tq, std::int64_t S, std::int64_t D,
           std::int64_t E, bool causal, double scale) {
  CAPTURE(Tq);
  CAPTURE(S);
  CAPTURE(causal);
  neap::attention_options const o{causal, scale};
  view<T> q({B, H, Tq, D}, 2 * H * D, 1), k({B, K, S, D}, 3, 2), v({B, K, S, E}, 0, 3), dy({B, H, Tq, E}, 1, 4);
  auto const element = q.ref().element;
  double const factor = scale != 0 ? scale : 1 / std::sqrt(double(D));
  std::vector<view<T>> ys, dqs, dks, dvs;
  std::vector<T> lse[2];
  for (int i = 0; i < 2; ++i) {
    neap::host_backend backend{i ? 3 : 1};
    view<T> y({B, H, Tq, E}, 0, 5), dq({B, H, Tq, D}, 2, 6), dk({B, K, S, D}, 0, 7), dv({B, K, S, E}, 0, 8);
    lse[i].resize(static_cast<std::size_t>(B * H * Tq));
    neap::tensor_ref const l{lse[i].data(), element, {B, H, Tq}, neap::dense_strides({B, H, Tq})};
    std::vector<std::byte> w(
        static_cast<std::size_t>(neap::attention_workspace(q.dims, k.dims, v.dims, o, element, backend.threads())),
        std::byte{0xff});
    neap::attention(backend, q.ref(), k.ref(), v.ref(), y.ref(), l, o, w.data());
    w.assign(static_cast<std::size_t>(
                 neap::attention_gradient_workspace(q.dims, k.dims, v.dims, o, element, backend.threads())),
             std::byte{0xff});
    neap::attention_gradient(backend, q.ref(), k.ref(), v.ref(), y.ref(), l, dy.ref(), dq.ref(), dk.ref(), dv.ref(), o,
                             w.data());
    ys.push_back(y), dqs.push_back(dq), dks.push_back(dk), dvs.push_back(dv);
  }
  CHECK(std::memcmp(ys[0].data.data(), ys[1].data.data(), ys[0].data.size() * sizeof(T)) == 0);
  CHECK(std::memcmp(dqs[0].data.data(), dqs[1].data.data(), dqs[0].data.size() * sizeof(T)) == 0);
  CHECK(std::memcmp(dks[0].data.data(), dks[1].data.data(), dks[0].data.size() * sizeof(T)) == 0);
  CHECK(std::memcmp(dvs[0].data.data(), dvs[1].data.data(), dvs[0].data.size() * sizeof(T)) == 0);

  // The definition, with the whole matrix of probabilities, and its gradient.
  double worst = 0;
  auto compare = [&](double want, T got) {
    double const d = std::abs(want - double(got)) / (1 + std::abs(want));
    if (!(d <= worst) && worst == worst) worst = d;  // a NaN stays
  };
  view<double> dk({B, K, S, D}, 0, 0), dv({B, K, S, E}, 0, 0);
  std::fill(dk.data.begin(), dk.data.end(), 0.), std::fill(dv.data.begin(), dv.data.end(), 0.);
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t i = 0; i < Tq; ++i) {
        auto const kh = h / (H / K);
        std::int64_t const n = causal ? std::min(S, i + 1) : S;
        std::vector<double> p(static_cast<std::size_t>(n)), dp(p.size());
        double most = -1e30, sum = 0, mean = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          double s = 0;
          for (std::int64_t d = 0; d < D; ++d) s += double(q.at(b, h, i, d)) * double(k.at(b, kh, j, d));
          most = std::max(most, p[j] = s * factor);
        }
        for (auto& x : p) sum += x = std::exp(x - most);
        for (auto& x : p) x /= sum;
        compare(most + std::log(sum), lse[0][static_cast<std::size_t>((b * H + h) * Tq + i)]);
        for (std::int64_t d = 0; d < E; ++d) {
          double y = 0;
          for (std::int64_t j = 0; j < n; ++j) {
            y += p[j] * double(v.at(b, kh, j, d));
            dp[j] += double(dy.at(b, h, i, d)) * double(v.at(b, kh, j, d));
            dv.at(b, kh, j, d) += p[j] * double(dy.at(b, h, i, d));
          }
          compare(y, ys[0].at(b, h, i, d));
        }
        for (std::int64_t j = 0; j < n; ++j) mean += p[j] * dp[j];
        for (std::int64_t d = 0; d < D; ++d) {
          double dq = 0;
          for (std::int64_t j = 0; j < n; ++j) {
            double const ds = p[j] * (dp[j] - mean) * factor;
            dq += ds * double(k.at(b, kh, j, d));
            dk.at(b, kh, j, d) += ds * double(q.at(b, h, i, d));
          }
          compare(dq, dqs[0].at(b, h, i, d));
        }
      }
  for (std::int64_t b = 0; b < B; ++b)
    for (std::int64_t h = 0; h < K; ++h)
      for (std::int64_t j = 0; j < S; ++j) {
        for (std::int64_t d = 0; d < D; ++d) compare(dk.at(b, h, j, d), dks[0].at(b, h, j, d));
        for (std::int64_t d = 0; d < E; ++d) compare(dv.at(b, h, j, d), dvs[0].at(b, h, j, d));
      }
  CHECK(worst < (sizeof(T) == 4 ? 2e-5 : 1e-12));
}

#if defined(NEAP_GEMM_AMX)
/// Operands, results and gradients of attention [B, H, T, D] by [B, K, S, D] and [B, K, S, E].
template <class T>
struct attention_data {
  neap::attention_options o;
  shape rows;
  view<T> q, k, v, dy, y, dq, dk, dv;
  std::vector<float> lse;

  attention_data(std::int64_t B, std::int64_t H, std::int64_t K, std::int64_t Tq, std::int64_t S, std::int64_t D,
                 std::int64_t E, bool causal)
      : o{causal, 0},
        rows{B, H, Tq},
        q({B, H, Tq, D}, 2 * H * D, 1),
        k({B, K, S, D}, 3, 2),
        v({B, K, S, E}, 0, 3),
        dy({B, H, Tq, E}, 1, 4),
        y({B, H, Tq, E}, 0, 5),
        dq({B, H, Tq, D}, 2, 6),
        dk({B, K, S, D}, 0, 7),
        dv({B, K, S, E}, 0, 8),
        lse(static_cast<std::size_t>(B * H * Tq)) {}
  neap::tensor_ref sums() { return {lse.data(), neap::dtype::f32, rows, neap::dense_strides(rows)}; }
  static std::vector<std::byte> memory(neap::bytes_t n) { return {static_cast<std::size_t>(n), std::byte{0xff}}; }
  void forward(int threads) {
    neap::host_backend backend{threads};
    auto w = memory(neap::attention_workspace(q.dims, k.dims, v.dims, o, q.ref().element, threads));
    neap::attention(backend, q.ref(), k.ref(), v.ref(), y.ref(), sums(), o, w.data());
  }
  void backward(int threads) {
    neap::host_backend backend{threads};
    auto w = memory(neap::attention_gradient_workspace(q.dims, k.dims, v.dims, o, q.ref().element, threads));
    neap::attention_gradient(backend, q.ref(), k.ref(), v.ref(), y.ref(), sums(), dy.ref(), dq.ref(), dk.ref(),
                             dv.ref(), o, w.data(), sums());
  }
};

/// The largest error of x, in units of what one rounding to bf16 takes and sums that go in as two bf16 each.
double error_beside(view<neap::bf16> const& x, view<float> const& want) {
  double worst = 0, largest = 0;
  for (float w : want.data) largest = std::max(largest, std::abs(double(w)));
  for (std::size_t i = 0; i < x.data.size(); ++i) {
    double const w = want.data[i], off = std::abs(double(x.data[i]) - w) / (0x1p-8 * std::abs(w) + 0x1p-14 * largest);
    if (!(off <= worst) && worst == worst) worst = off;  // a NaN stays
  }
  return worst;
}

/// bf16 on matrix units beside the same numbers in f32: each result is rounded once. One thread and three.
void check_units(std::int64_t B, std::int64_t H, std::int64_t K, std::int64_t Tq, std::int64_t S, std::int64_t D,
                 std::int64_t E, bool causal, float range = 1) {
  CAPTURE(Tq);
  CAPTURE(S);
  CAPTURE(D);
  CAPTURE(causal);
  using neap::bf16;
  attention_data<bf16> low(B, H, K, Tq, S, D, E, causal);
  for (auto& x : low.q.data) x = bf16(range * x);
  REQUIRE(neap::attention_on_units(low.q.dims, low.k.dims, low.v.dims));
  attention_data<float> wide(B, H, K, Tq, S, D, E, causal);
  auto const widen = [](view<bf16> const& from, view<float>& to) {
    std::copy(from.data.begin(), from.data.end(), to.data.begin());
  };
  widen(low.q, wide.q), widen(low.k, wide.k), widen(low.v, wide.v), widen(low.dy, wide.dy);
  widen(low.y, wide.y), widen(low.dq, wide.dq), widen(low.dk, wide.dk), widen(low.dv, wide.dv);  // between the rows
  auto again = low;
  low.forward(1), again.forward(3), wide.forward(2);
  CHECK(error_beside(low.y, wide.y) <= 1);
  for (std::size_t i = 0; i < wide.lse.size(); ++i) CHECK(low.lse[i] == doctest::Approx(wide.lse[i]).epsilon(1e-5));
  CHECK(low.lse == again.lse);
  widen(low.y, wide.y);
  low.backward(1), again.backward(3), wide.backward(2);
  CHECK(error_beside(low.dq, wide.dq) <= 1);
  CHECK(error_beside(low.dk, wide.dk) <= 1);
  CHECK(error_beside(low.dv, wide.dv) <= 1);
  auto const equal = [](view<bf16> const& a, view<bf16> const& b) {
    return std::memcmp(a.data.data(), b.data.data(), a.data.size() * sizeof(bf16)) == 0;
  };
  CHECK(equal(low.y, again.y));
  CHECK(equal(low.dq, again.dq));
  CHECK(equal(low.dk, again.dk));
  CHECK(equal(low.dv, again.dv));
}
#endif

}  // namespace

TEST_CASE("attention and its gradient agree with the definition") {
  check<float>(2, 4, 4, 33, 33, 16, 16, false, 0);
  check<float>(2, 4, 2, 40, 40, 16, 8, true, 0);
  check<double>(1, 2, 1, 7, 19, 5, 3, false, 0.3);
  check<double>(1, 2, 2, 19, 7, 5, 5, true, 0);
  check<double>(1, 2, 2, 7, 19, 5, 5, true, 0);
  check<double>(1, 1, 1, 1, 1, 1, 1, true, 0);
  check<double>(1, 2, 1, 300, 530, 8, 8, false, 0);  // several blocks of queries and keys
  check<double>(1, 2, 1, 530, 530, 8, 8, true, 0);
}

TEST_CASE("attention of bf16 on matrix units rounds once; without them it is refused") {
#if defined(NEAP_GEMM_AMX)
  if (neap::detail::gemm_amx::usable()) {
    for (bool causal : {false, true}) {
      check_units(2, 4, 4, 64, 64, 32, 32, causal);
      check_units(1, 4, 2, 301, 301, 24, 40, causal);    // several blocks, odd extents, shared keys
      check_units(1, 1, 1, 97, 97, 33, 17, causal, 30);  // scores far apart
    }
    check_units(1, 2, 1, 100, 530, 80, 16, false);
    check_units(1, 1, 1, 257, 129, 256, 256, false);
  }
  CHECK_FALSE(neap::attention_on_units({1, 1, 300, 264}, {1, 1, 300, 264}, {1, 1, 300, 64}));
#endif
  CHECK_FALSE(neap::attention_on_units({1, 1, 8, 8}, {1, 1, 8, 8}, {1, 1, 8, 8}));
  neap::host_backend backend{1};
  view<neap::bf16> q({1, 1, 8, 8}, 0, 1), y({1, 1, 8, 8}, 0, 2);
  CHECK_THROWS_AS(neap::attention(backend, q.ref(), q.ref(), q.ref(), y.ref(), {}, {}, nullptr), neap::error);
}

#if defined(NEAP_GEMM_AMX)
TEST_CASE("a number is the sum of two bf16, up to 2^-15 of it; what is not finite is the first") {
  std::vector<float> x(1003);
  neap::random_stream draw{3};
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>((2 * draw.uniform() - 1) * std::exp2(160 * draw.uniform() - 80));
  float const infinity = std::numeric_limits<float>::infinity();
  x[0] = infinity, x[1] = -infinity, x[2] = std::numeric_limits<float>::quiet_NaN(), x[3] = 0, x[4] = -0.f;
  x[5] = std::numeric_limits<float>::max(), x[6] = -x[5];
  std::vector<neap::bf16> high(x.size()), low(x.size());
  neap::detail::gemm_amx::split16(x.data(), static_cast<std::int64_t>(x.size()), high.data(), low.data());
  CHECK(float(high[0]) == infinity);
  CHECK(float(high[1]) == -infinity);
  CHECK(std::isnan(float(high[2])));
  for (std::size_t i : {0, 1, 2, 3, 4}) CHECK(float(low[i]) == 0);
  double worst = 0;
  for (std::size_t i = 5; i < x.size(); ++i)
    worst = std::max(worst, std::abs(double(high[i]) + double(low[i]) - double(x[i])) / std::abs(double(x[i])));
  CHECK(worst <= 0x1p-15);
}
#endif

TEST_CASE("attention refuses what does not fit") {
  CHECK_THROWS_AS(neap::attention_workspace({1, 3, 4, 8}, {1, 2, 4, 8}, {1, 2, 4, 8}, {}, neap::dtype::f32, 1),
                  neap::error);
  CHECK_THROWS_AS(neap::attention_workspace({1, 2, 4, 8}, {1, 2, 4, 7}, {1, 2, 4, 8}, {}, neap::dtype::f32, 1),
                  neap::error);
}
