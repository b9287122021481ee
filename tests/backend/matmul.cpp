#include <neap/backend/kernels/matmul.hpp>

#include <neap/core/philox.hpp>

#include <cmath>
#include <cstring>
#include <vector>

#include <doctest/doctest.h>

namespace {

std::vector<double> numbers(std::int64_t n, std::uint64_t seed) {
  neap::random_stream draw{seed};
  std::vector<double> v(static_cast<std::size_t>(n));
  for (auto& x : v) x = double(draw.uniform()) - 0.5;
  return v;
}
neap::tensor_ref view(std::vector<double>& v, neap::shape dims, neap::extents strides) {
  return {v.data(), neap::dtype::f64, dims, strides};
}
neap::tensor_ref dense(std::vector<double>& v, neap::shape dims) { return view(v, dims, neap::dense_strides(dims)); }

double at(neap::tensor_ref const& t, std::int64_t b0, std::int64_t b1, std::int64_t i, std::int64_t j) {
  std::int64_t const index[4]{b0, b1, i, j};
  std::int64_t o = 0;
  for (int axis = 0; axis < t.rank(); ++axis) {
    auto const x = index[axis + 4 - t.rank()];
    o += (t.dims[axis] == 1 ? 0 : x) * t.strides[axis];
  }
  return t.as<double>()[o];
}
void check(neap::tensor_ref a, neap::tensor_ref b, neap::tensor_ref y, neap::matmul_options o = {}) {
  neap::host_backend one{1}, two{2};
  std::int64_t span = 1;
  for (int i = 0; i < y.rank(); ++i) span += (y.dims[i] - 1) * y.strides[i];
  auto* p = y.as<double>();
  std::vector<double> const before(p, p + span);
  std::vector<std::byte> w(static_cast<std::size_t>(neap::matmul_workspace(a, b, y, o)) + 64);
  neap::matmul(one, a, b, y, o, w.data());
  std::vector<double> const first(p, p + span);
  std::copy(before.begin(), before.end(), p);
  auto const was = [&](double const* q) { return before[static_cast<std::size_t>(q - p)]; };
  neap::matmul(two, a, b, y, o, w.data());
  CHECK(std::memcmp(first.data(), p, first.size() * sizeof(double)) == 0);
  std::int64_t const n0 = y.rank() > 3 ? y.extent(-4) : 1, n1 = y.rank() > 2 ? y.extent(-3) : 1;
  std::int64_t const k = a.extent(o.transpose_a ? -2 : -1);
  double worst = 0;
  for (std::int64_t b0 = 0; b0 < n0; ++b0)
    for (std::int64_t b1 = 0; b1 < n1; ++b1)
      for (std::int64_t i = 0; i < y.extent(-2); ++i)
        for (std::int64_t j = 0; j < y.extent(-1); ++j) {
          double sum = 0;
          for (std::int64_t x = 0; x < k; ++x)
            sum += (o.transpose_a ? at(a, b0, b1, x, i) : at(a, b0, b1, i, x)) *
                   (o.transpose_b ? at(b, b0, b1, j, x) : at(b, b0, b1, x, j));
          std::int64_t const index[4]{b0, b1, i, j};
          std::int64_t off = 0;
          for (int axis = 0; axis < y.rank(); ++axis) off += index[axis + 4 - y.rank()] * y.strides[axis];
          if (o.accumulate) sum += was(p + off);
          worst = std::max(worst, std::abs(sum - p[off]));
        }
  CHECK(worst < 1e-12);
}

}  // namespace

TEST_CASE("matmul: dense, transposed, accumulated") {
  auto a = numbers(4 * 30 * 40, 1), b = numbers(4 * 30 * 40, 2), y = numbers(4 * 40 * 40, 3);
  check(dense(a, {7, 9}), dense(b, {9, 5}), dense(y, {7, 5}));
  check(dense(a, {9, 7}), dense(b, {9, 5}), dense(y, {7, 5}), {.transpose_a = true});
  check(dense(a, {7, 9}), dense(b, {5, 9}), dense(y, {7, 5}), {.transpose_b = true, .accumulate = true});
  check(dense(a, {4, 9, 7}), dense(b, {4, 5, 9}), dense(y, {4, 7, 5}), {.transpose_a = true, .transpose_b = true});
  check(dense(a, {1, 1}), dense(b, {1, 1}), dense(y, {1, 1}));
  check(dense(a, {1, 9}), dense(b, {9, 1}), dense(y, {1, 1}));
  check(dense(a, {9, 1}), dense(b, {1, 9}), dense(y, {9, 9}));
}

TEST_CASE("matmul: broadcast batches fold into rows") {
  auto a = numbers(6 * 30 * 40, 1), b = numbers(6 * 30 * 40, 2), y = numbers(6 * 40 * 40, 3);
  check(dense(a, {2, 3, 7, 9}), dense(b, {9, 5}), dense(y, {2, 3, 7, 5}));
  check(dense(a, {2, 3, 7, 9}), dense(b, {2, 1, 9, 5}), dense(y, {2, 3, 7, 5}));
  check(dense(a, {7, 9}), dense(b, {2, 3, 9, 5}), dense(y, {2, 3, 7, 5}));
  check(dense(a, {2, 3, 1, 9}), dense(b, {9, 5}), dense(y, {2, 3, 1, 5}));
  check(view(a, {4, 7, 9}, {63, 9, 1}), view(b, {4, 9, 5}, {0, 5, 1}), dense(y, {4, 7, 5}));
  auto const p = neap::detail::matmul_plan::of(dense(a, {2, 3, 7, 9}), dense(b, {9, 5}), dense(y, {2, 3, 7, 5}), {});
  CHECK(p.batches == 1);
  CHECK(p.each.m == 42);
}

TEST_CASE("matmul: views") {
  auto a = numbers(4000, 1), b = numbers(4000, 2), y = numbers(4000, 3);
  check(view(a, {2, 3, 5, 4}, {5 * 36, 4, 36, 1}), view(b, {2, 3, 5, 4}, {5 * 36, 4, 36, 1}), dense(y, {2, 3, 5, 5}),
        {.transpose_b = true});                                                       // heads of a packed [B, T, 3C]
  check(view(a, {6, 5}, {1, 6}), view(b, {5, 7}, {1, 5}), view(y, {6, 7}, {20, 1}));  // permuted views
  check(view(a, {3, 6, 5}, {5, 15, 1}), dense(b, {5, 4}), dense(y, {3, 6, 4}));
  neap::host_backend host{1};
  CHECK_THROWS_AS(neap::matmul(host, view(a, {6, 5}, {10, 2}), dense(b, {5, 4}), dense(y, {6, 4})), neap::error);
  CHECK_THROWS_AS(neap::matmul(host, dense(a, {6, 5}), dense(b, {4, 4}), dense(y, {6, 4})), neap::error);
}
