#include <neap/backend/kernels/pool2d.hpp>

#include <neap/core/philox.hpp>

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

namespace {

using neap::pool2d_options;
using neap::shape;
using numbers = std::vector<double>;

numbers draw(std::int64_t n, std::uint64_t seed) {
  neap::random_stream r{seed};
  numbers v(static_cast<std::size_t>(n));
  for (auto& x : v) x = double(r.uniform()) - 0.5;
  return v;
}
neap::tensor_ref dense(numbers& v, shape d) { return {v.data(), neap::dtype::f64, d, neap::dense_strides(d)}; }
/// Places, in bytes or integers as the window asks for.
struct places {
  std::vector<std::int32_t> memory;
  neap::tensor_ref at(shape d, pool2d_options const& o) {
    memory.assign(static_cast<std::size_t>(elements(d)), -1);
    return {memory.data(), neap::max_pool2d_place(o), d, neap::dense_strides(d)};
  }
};
double dot(numbers const& a, numbers const& b) {
  double s = 0;
  for (std::size_t i = 0; i < a.size(); ++i) s += a[i] * b[i];
  return s;
}

// One plane, by the definition: f(output, window's elements inside, extent with padding).
template <class F>
void windows(shape const& x, shape const& y, pool2d_options const& o, F f) {
  for (std::int64_t p = 0; p < x[0] * x[1]; ++p)
    for (std::int64_t i = 0; i < y[2]; ++i)
      for (std::int64_t j = 0; j < y[3]; ++j) {
        std::vector<std::int64_t> inside;
        std::int64_t padded = 0;
        for (std::int64_t a = 0; a < o.window[0]; ++a)
          for (std::int64_t b = 0; b < o.window[1]; ++b) {
            auto const r = i * o.stride[0] - o.padding[0] + a, c = j * o.stride[1] - o.padding[1] + b;
            padded += r < x[2] + o.padding[0] && c < x[3] + o.padding[1];
            if (r >= 0 && r < x[2] && c >= 0 && c < x[3]) inside.push_back((p * x[2] + r) * x[3] + c);
          }
        f((p * y[2] + i) * y[3] + j, inside, padded);
      }
}

void check(shape xs, pool2d_options o) {
  shape const ys = neap::pool2d_shape(xs, o);
  auto x = draw(elements(xs), 1), dy = draw(elements(ys), 2);
  numbers most(dy.size()), mean(dy.size()), dmost(x.size()), dmean(x.size());
  windows(xs, ys, o, [&](std::int64_t at, std::vector<std::int64_t> const& in, std::int64_t padded) {
    auto best = in.front();
    auto const n = double(o.count_padding ? padded : std::int64_t(in.size()));
    for (auto i : in) {
      if (x[i] > x[best]) best = i;
      mean[at] += x[i] / n;
      dmean[i] += dy[at] / n;
    }
    most[at] = x[best];
    dmost[best] += dy[at];
  });
  for (int threads : {1, 3}) {
    neap::host_backend host{threads};
    numbers y(dy.size()), dx(x.size(), 9);
    places kept;
    auto const place = kept.at(ys, o);
    neap::max_pool2d(host, dense(x, xs), dense(y, ys), place, o);
    CHECK(y == most);
    neap::max_pool2d_gradient(host, dense(dy, ys), place, dense(dx, xs), o);
    CHECK(dx == dmost);
    neap::avg_pool2d(host, dense(x, xs), dense(y, ys), o);
    neap::avg_pool2d_gradient(host, dense(dy, ys), dense(dx, xs), o);
    double worst = 0;
    for (std::size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(y[i] - mean[i]));
    for (std::size_t i = 0; i < dx.size(); ++i) worst = std::max(worst, std::abs(dx[i] - dmean[i]));
    CHECK(worst < 1e-14);
  }
}

}  // namespace

TEST_CASE("pooling agrees with the definition") {
  check({2, 3, 8, 8}, {});
  check({2, 3, 9, 7}, {});
  check({1, 1, 1, 1}, {.window = {1, 1}, .stride = {1, 1}});
  check({1, 2, 9, 11}, {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  check({1, 2, 9, 11}, {.window = {3, 2}, .stride = {1, 1}, .padding = {1, 0}, .count_padding = false});
  check({2, 1, 9, 11}, {.window = {2, 2}, .stride = {4, 3}});
  check({1, 1, 4, 40}, {.window = {4, 20}, .stride = {4, 20}});
  neap::random_stream r{3};
  for (int i = 0; i < 30; ++i) {
    pool2d_options o;
    shape x{1 + r.below(2), 1 + r.below(3)};
    for (std::size_t a = 0; a < 2; ++a) {
      o.window[a] = 1 + r.below(4), o.stride[a] = 1 + r.below(4);
      o.padding[a] = r.below(static_cast<std::uint32_t>(o.window[a] / 2 + 1));
      x.push_back(o.window[a] + r.below(9));
    }
    o.count_padding = i % 2;
    check(x, o);
  }
  CHECK_THROWS_AS(neap::pool2d_shape({1, 1, 1, 1}, {}), neap::error);
  CHECK_THROWS_AS(neap::pool2d_shape({1, 1, 5, 5}, {.padding = {2, 2}}), neap::error);
}

TEST_CASE("a NaN is the maximum") {
  neap::host_backend host{1};
  numbers x{1, 2, std::numeric_limits<double>::quiet_NaN(), 3}, y{0};
  places kept;
  auto const place = kept.at({1, 1, 1, 1}, {});
  neap::max_pool2d(host, dense(x, {1, 1, 2, 2}), dense(y, {1, 1, 1, 1}), place, {});
  CHECK(y[0] != y[0]);
  CHECK(*place.as<std::uint8_t>() == 2);
}

TEST_CASE("of equal elements the first is the maximum, in long rows as at their ends") {
  neap::host_backend host{1};
  shape const xs{1, 1, 6, 301};
  for (std::int64_t stride : {1, 2, 3}) {
    pool2d_options const o{.window = {3, 3}, .stride = {stride, stride}, .padding = {1, 1}};
    shape const ys = neap::pool2d_shape(xs, o);
    numbers x(static_cast<std::size_t>(elements(xs)), 2), y(static_cast<std::size_t>(elements(ys)));
    places kept;
    auto const place = kept.at(ys, o);
    neap::max_pool2d(host, dense(x, xs), dense(y, ys), place, o);
    for (std::int64_t i = 0; i < ys[2]; ++i)
      for (std::int64_t j = 0; j < ys[3]; ++j)
        CHECK(place.as<std::uint8_t>()[i * ys[3] + j] == (i == 0 ? 3 : 0) + (j == 0 ? 1 : 0));
  }
}

TEST_CASE("places of large windows are integers, and what is not of that type is refused") {
  pool2d_options const large{.window = {17, 16}, .stride = {17, 16}};
  CHECK(neap::max_pool2d_place(large) == neap::dtype::i32);
  check({1, 2, 34, 48}, large);
  neap::host_backend host{1};
  numbers x(4), y(1);
  places kept;
  CHECK_THROWS_AS(
      neap::max_pool2d(host, dense(x, {1, 1, 2, 2}), dense(y, {1, 1, 1, 1}), kept.at({1, 1, 1, 1}, large), {}),
      neap::error);
}

TEST_CASE("adaptive averages: known means, and the gradient is the adjoint") {
  neap::host_backend host{2};
  for (auto [h, w, oh, ow] : {std::array<std::int64_t, 4>{7, 9, 1, 1}, {7, 9, 3, 2}, {2, 2, 5, 3}, {1, 1, 1, 1}}) {
    shape const xs{2, 3, h, w}, ys{2, 3, oh, ow};
    auto x = draw(elements(xs), 1), dy = draw(elements(ys), 2);
    numbers y(dy.size()), dx(x.size());
    neap::adaptive_avg_pool2d(host, dense(x, xs), dense(y, ys));
    neap::adaptive_avg_pool2d_gradient(host, dense(dy, ys), dense(dx, xs));
    CHECK(dot(dy, y) == doctest::Approx(dot(dx, x)).epsilon(1e-12));
    if (oh == 1) {
      double sum = 0;
      for (std::int64_t i = 0; i < h * w; ++i) sum += x[static_cast<std::size_t>(i)];
      CHECK(y[0] == doctest::Approx(sum / double(h * w)));
    }
  }
}

TEST_CASE("pooling of views") {
  neap::host_backend host{1};
  shape const xs{2, 3, 6, 8}, ys{2, 3, 3, 4};
  auto x = draw(elements(xs), 1);
  numbers turned(x.size()), y(elements(ys)), z(elements(ys));
  for (std::size_t p = 0; p < 6; ++p)
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t j = 0; j < 8; ++j) turned[p * 48 + j * 6 + i] = x[p * 48 + i * 8 + j];
  neap::tensor_ref const v{turned.data(), neap::dtype::f64, xs, {144, 48, 1, 6}};
  places kept, kept_of_view;
  neap::max_pool2d(host, dense(x, xs), dense(y, ys), kept.at(ys, {}), {});
  neap::max_pool2d(host, v, dense(z, ys), kept_of_view.at(ys, {}), {});
  CHECK(y == z);
  CHECK(kept.memory == kept_of_view.memory);
}
