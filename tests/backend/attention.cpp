#include <neap/backend/kernels/attention.hpp>

#include <neap/core/philox.hpp>

#include <cmath>
#include <cstring>
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
    return {data.data(), sizeof(T) == 4 ? neap::dtype::f32 : neap::dtype::f64, dims,
            extents{dims[2] * pitch, dims[3], pitch, 1}};
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

TEST_CASE("attention refuses what does not fit") {
  CHECK_THROWS_AS(neap::attention_workspace({1, 3, 4, 8}, {1, 2, 4, 8}, {1, 2, 4, 8}, {}, neap::dtype::f32, 1),
                  neap::error);
  CHECK_THROWS_AS(neap::attention_workspace({1, 2, 4, 8}, {1, 2, 4, 7}, {1, 2, 4, 8}, {}, neap::dtype::f32, 1),
                  neap::error);
}
