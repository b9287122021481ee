#include <neap/backend/kernels/conv2d.hpp>

#include <neap/core/philox.hpp>

#include <cmath>
#include <cstring>
#include <vector>

#include "../support/convolution_products.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

namespace {

using neap::conv2d_options;
using neap::shape;

template <class T>
std::vector<T> numbers(std::int64_t n, std::uint64_t seed) {
  neap::random_stream draw{seed};
  std::vector<T> v(static_cast<std::size_t>(n));
  for (auto& x : v) x = static_cast<T>(draw.uniform() - 0.5f);
  return v;
}
template <class T>
neap::tensor_ref dense(std::vector<T>& v, shape dims) {
  return {v.data(), sizeof(T) == 4 ? neap::dtype::f32 : neap::dtype::f64, dims, neap::dense_strides(dims)};
}
template <class T>
double difference(std::vector<T> const& got, std::vector<double> const& want) {
  double worst = 0, size = 1;
  for (std::size_t i = 0; i < want.size(); ++i) {
    double const d = std::abs(double(got[i]) - want[i]);
    worst = d <= worst ? worst : d;  // NaN stays
    if (d != d) return d;
    size = std::max(size, std::abs(want[i]));
  }
  return worst / size;
}
template <class T>
bool same(std::vector<T> const& a, std::vector<T> const& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void check(shape xs, shape ws, conv2d_options o) {
  shape const ys = neap::conv2d_shape(xs, ws, o);
  std::string const what = to_string(xs) + to_string(ws) + " stride " + std::to_string(o.stride[0]) + "," +
                           std::to_string(o.stride[1]) + " pad " + std::to_string(o.padding[0]) + "," +
                           std::to_string(o.padding[1]) + " dilation " + std::to_string(o.dilation[0]) + "," +
                           std::to_string(o.dilation[1]) + " groups " + std::to_string(o.groups);
  CAPTURE(what);
  auto x = numbers<T>(elements(xs), 1), w = numbers<T>(elements(ws), 2), bias = numbers<T>(ws[0], 3);
  auto dy = numbers<T>(elements(ys), 4);
  std::vector<double> y_(elements(ys)), dx_(x.size()), dw_(w.size()), db_(bias.size());
  for (std::size_t i = 0; i < y_.size(); ++i) {
    auto const c = static_cast<std::int64_t>(i) / (ys[2] * ys[3]) % ys[1];
    y_[i] = double(bias[c]);
    db_[c] += double(dy[i]);
  }
  neap::testing::convolution_products(xs, ws, ys, o, [&](std::int64_t i, std::int64_t f, std::int64_t j) {
    y_[j] += double(x[i]) * double(w[f]);
    dx_[i] += double(dy[j]) * double(w[f]);
    dw_[f] += double(x[i]) * double(dy[j]);
  });
  std::vector<T> y[2], dx[2], dw[2], db[2];
  for (int k = 0; k < 2; ++k) {
    neap::host_backend backend{k == 0 ? 1 : 3};
    int const threads = backend.threads();
    y[k].assign(y_.size(), T(7)), dx[k].assign(x.size(), T(7)), dw[k].assign(w.size(), T(7)),
        db[k].assign(bias.size(), T(7));
    auto const e = dense(x, xs).element;
    auto room = [](neap::bytes_t n) { return std::vector<std::byte>(static_cast<std::size_t>(n), std::byte{0xff}); };
    auto s = room(neap::conv2d_workspace(xs, ws, o, e, threads));
    neap::conv2d(backend, dense(x, xs), dense(w, ws), dense(bias, {ws[0]}), dense(y[k], ys), o, s.data());
    s = room(neap::conv2d_input_gradient_workspace(xs, ws, o, e, threads));
    neap::conv2d_input_gradient(backend, dense(dy, ys), dense(w, ws), dense(dx[k], xs), o, s.data());
    s = room(neap::conv2d_weight_gradient_workspace(xs, ws, o, e, threads));
    neap::conv2d_weight_gradient(backend, dense(x, xs), dense(dy, ys), dense(dw[k], ws), o, s.data());
    neap::conv2d_bias_gradient(backend, dense(dy, ys), dense(db[k], {ws[0]}));
  }
  double const bound = sizeof(T) == 4 ? 1e-5 : 1e-13;
  CHECK(difference(y[0], y_) < bound);
  CHECK(difference(dx[0], dx_) < bound);
  CHECK(difference(dw[0], dw_) < bound);
  CHECK(difference(db[0], db_) < bound);
  CHECK(same(y[0], y[1]));
  CHECK(same(dx[0], dx[1]));
  CHECK(same(dw[0], dw[1]));
  CHECK(same(db[0], db[1]));
}

}  // namespace

TEST_CASE("conv2d and its gradients agree with the definition") {
  check<float>({2, 3, 9, 11}, {16, 3, 3, 3}, {.padding = {1, 1}});
  check<float>({3, 8, 8, 8}, {13, 8, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}});
  check<float>({2, 8, 7, 9}, {24, 8, 1, 1}, {});
  check<float>({2, 8, 7, 9}, {5, 8, 1, 1}, {.stride = {2, 2}});
  check<double>({2, 4, 8, 8}, {6, 4, 5, 3}, {.padding = {2, 1}});
  check<double>({1, 1, 1, 1}, {1, 1, 1, 1}, {});
  check<double>({2, 2, 2, 2}, {2, 2, 1, 1}, {.padding = {1, 2}});
  check<double>({2, 2, 9, 9}, {2, 2, 2, 2}, {.stride = {3, 4}});                // stride > filter
  check<double>({2, 6, 5, 6}, {6, 1, 3, 3}, {.padding = {1, 1}, .groups = 6});  // depthwise
  check<double>({1, 2, 2, 2}, {3, 2, 3, 3}, {.padding = {4, 5}, .dilation = {2, 1}});
  check<float>({2, 64, 40, 40}, {8, 64, 3, 3}, {.padding = {1, 1}});  // several strips
  check<float>({41, 16, 8, 8}, {64, 16, 3, 3}, {.padding = {1, 1}});  // several batches of a chunk
}

TEST_CASE("conv2d of many channels, which are matrix products where the machine has tiles for them") {
  check<float>({3, 128, 7, 7}, {144, 128, 3, 3}, {.padding = {1, 1}});
  check<float>({2, 132, 13, 14}, {129, 132, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}});
  check<float>({5, 512, 9, 5}, {128, 512, 1, 1}, {});
  check<float>({2, 140, 6, 8}, {512, 140, 1, 1}, {.stride = {2, 2}});
  check<float>({2, 256, 7, 6}, {300, 128, 3, 2}, {.padding = {0, 1}, .groups = 2});
  check<float>({2, 128, 12, 11}, {128, 128, 3, 3}, {.padding = {2, 3}, .dilation = {2, 3}});
  check<float>({1, 130, 40, 20}, {128, 130, 3, 2}, {});  // strips of images
  check<float>({2, 3, 48, 48}, {160, 3, 16, 16}, {.stride = {16, 16}});
  neap::random_stream draw{9};
  for (int i = 0; i < neap::testing::cases(12); ++i) {
    conv2d_options o;
    shape x{1 + draw.below(6), 126 + draw.below(20)}, w{126 + draw.below(20), x[1]};
    for (std::size_t a = 0; a < 2; ++a) {
      std::int64_t const k = 1 + draw.below(3);
      o.stride[a] = 1 + draw.below(2), o.padding[a] = draw.below(3), o.dilation[a] = 1 + draw.below(2);
      x.push_back(std::max<std::int64_t>(1 + draw.below(14), (k - 1) * o.dilation[a] + 1 - 2 * o.padding[a]));
      w.push_back(k);
    }
    check<float>(x, w, o);
  }
}

TEST_CASE("3x3 convolutions of stride 1, which Winograd's algorithm takes where the machine has vectors for it") {
  conv2d_options const same_size{.padding = {1, 1}};
  check<float>({1, 16, 16, 16}, {16, 16, 3, 3}, same_size);
  check<float>({2, 17, 13, 22}, {33, 17, 3, 3}, same_size);     // lanes without a channel, tiles over the edge
  check<float>({3, 64, 8, 133}, {40, 64, 3, 3}, same_size);     // rows of two units
  check<float>({5, 130, 12, 12}, {144, 130, 3, 3}, same_size);  // weights by the panel
  if (!neap::testing::sanitized) check<float>({2, 260, 20, 24}, {256, 260, 3, 3}, {});  // and tiles by the block
  check<float>({9, 32, 4, 4}, {32, 32, 3, 3}, same_size);                               // images of one tile
  neap::random_stream draw{10};
  for (int i = 0; i < neap::testing::cases(30); ++i) {
    conv2d_options o;
    shape x{1 + draw.below(5), 16 + draw.below(70)}, w{16 + draw.below(70), x[1], 3, 3};
    for (std::size_t a = 0; a < 2; ++a) {
      o.padding[a] = draw.below(5);
      x.push_back(std::max<std::int64_t>(1 + draw.below(40), 3 - 2 * o.padding[a]));
    }
    check<float>(x, w, o);
  }
}

TEST_CASE("convolutions of stride 2, which are products by taps where the machine has vectors for them") {
  neap::random_stream draw{11};
  for (int i = 0; i < neap::testing::cases(40); ++i) {
    conv2d_options o{.stride = {2, 2}};
    std::int64_t const k = i % 3 == 0 ? 1 : 3;
    shape x{1 + draw.below(5), 16 + draw.below(70)}, w{16 + draw.below(70), x[1], k, k};
    for (std::size_t a = 0; a < 2; ++a) {
      o.padding[a] = draw.below(5);
      x.push_back(std::max<std::int64_t>(1 + draw.below(70), k - 2 * o.padding[a]));
    }
    check<float>(x, w, o);
  }
  check<float>({2, 130, 15, 16}, {144, 130, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}});
}

TEST_CASE("3x3 convolutions of views have the bits of those of dense tensors") {
  shape const xs{2, 20, 11, 18}, ws{24, 20, 3, 3}, ys{2, 24, 11, 18};
  conv2d_options const o{.padding = {1, 1}};
  auto const f32 = neap::dtype::f32;
  neap::host_backend backend{2};
  // The same numbers with channels last, and rows with a gap.
  auto const channels_last = [](shape const& d) {
    return neap::extents{d[1] * d[2] * (d[3] + 3), 1, d[1] * (d[3] + 3), d[1]};
  };
  auto const copy = [&](std::vector<float> const& from, shape const& d, neap::extents const& strides, bool back) {
    std::vector<float> to(static_cast<std::size_t>(back ? elements(d) : d[0] * strides[0]), 0.25f);
    for (std::int64_t i = 0; i < elements(d); ++i) {
      std::int64_t const at = i / (d[1] * d[2] * d[3]) * strides[0] + i / (d[2] * d[3]) % d[1] * strides[1] +
                              i / d[3] % d[2] * strides[2] + i % d[3] * strides[3];
      back ? to[i] = from[at] : to[at] = from[i];
    }
    return to;
  };
  auto x = numbers<float>(elements(xs), 1), w = numbers<float>(elements(ws), 2), dy = numbers<float>(elements(ys), 3);
  std::vector<float> y(dy.size()), dx(x.size()), dw(w.size());
  std::vector<std::byte> room(static_cast<std::size_t>(
      std::max({neap::conv2d_workspace(xs, ws, o, f32, 2), neap::conv2d_input_gradient_workspace(xs, ws, o, f32, 2),
                neap::conv2d_weight_gradient_workspace(xs, ws, o, f32, 2)})));
  neap::conv2d(backend, dense(x, xs), dense(w, ws), {}, dense(y, ys), o, room.data());
  neap::conv2d_input_gradient(backend, dense(dy, ys), dense(w, ws), dense(dx, xs), o, room.data());
  neap::conv2d_weight_gradient(backend, dense(x, xs), dense(dy, ys), dense(dw, ws), o, room.data());

  auto const as = [&](std::vector<float>& v, shape const& d) {
    return neap::tensor_ref{v.data(), f32, d, channels_last(d)};
  };
  auto x2 = copy(x, xs, channels_last(xs), false), w2 = copy(w, ws, channels_last(ws), false);
  auto dy2 = copy(dy, ys, channels_last(ys), false);
  std::vector<float> y2(dy2.size()), dx2(x2.size()), dw2(w2.size());
  neap::conv2d(backend, as(x2, xs), as(w2, ws), {}, as(y2, ys), o, room.data());
  neap::conv2d_input_gradient(backend, as(dy2, ys), as(w2, ws), as(dx2, xs), o, room.data());
  neap::conv2d_weight_gradient(backend, as(x2, xs), as(dy2, ys), as(dw2, ws), o, room.data());
  CHECK(same(copy(y2, ys, channels_last(ys), true), y));
  CHECK(same(copy(dx2, xs, channels_last(xs), true), dx));
  CHECK(same(copy(dw2, ws, channels_last(ws), true), dw));
  // And added to what is there.
  auto twice = dw;
  neap::conv2d_weight_gradient(backend, dense(x, xs), dense(dy, ys), dense(twice, ws), o, room.data(), true);
  for (std::size_t i = 0; i < dw.size(); ++i) CHECK(twice[i] == dw[i] + dw[i]);
}

TEST_CASE("a weight gradient of many channels is added to what is there") {
  shape const xs{3, 130, 7, 7}, ws{128, 130, 3, 3};
  conv2d_options const o{.padding = {1, 1}};
  auto x = numbers<float>(elements(xs), 1), dy = numbers<float>(3 * 128 * 7 * 7, 4);
  std::vector<float> once(static_cast<std::size_t>(elements(ws))), twice;
  neap::host_backend backend{2};
  std::vector<std::byte> room(
      static_cast<std::size_t>(neap::conv2d_weight_gradient_workspace(xs, ws, o, neap::dtype::f32, 2)));
  auto const run = [&](std::vector<float>& dw, bool add) {
    neap::conv2d_weight_gradient(backend, dense(x, xs), dense(dy, {3, 128, 7, 7}), dense(dw, ws), o, room.data(), add);
  };
  run(once, false);
  twice = once;
  run(twice, true);
  std::vector<double> expected;
  for (float v : once) expected.push_back(2 * double(v));
  CHECK(difference(twice, expected) < 1e-5);
}

TEST_CASE("pointwise convolutions of many channels, which are matrix products where the machine has units for them") {
  check<float>({1, 32, 8, 8}, {32, 32, 1, 1}, {});
  check<float>({2, 64, 7, 7}, {48, 64, 1, 1}, {});
  check<float>({5, 33, 9, 12}, {70, 33, 1, 1}, {});
  check<float>({3, 600, 6, 11}, {40, 600, 1, 1}, {});
  check<float>({2, 40, 30, 21}, {130, 40, 1, 1}, {});
  // What is added to, and what is not finite.
  neap::random_stream draw{46};
  for (int i = 0; i < 6; ++i) {
    shape const xs{2 + draw.below(3), 64 + draw.below(20), 8, 9}, ws{50 + draw.below(40), xs[1], 1, 1},
        ys{xs[0], ws[0], 8, 9};
    auto x = numbers<float>(elements(xs), 1), dy = numbers<float>(elements(ys), 2),
         start = numbers<float>(elements(ws), 3);
    if (i > 2) x[static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(x.size())))] = INFINITY;
    if (i > 4) dy[static_cast<std::size_t>(draw.below(static_cast<std::int64_t>(dy.size())))] = NAN;
    std::vector<double> want(start.begin(), start.end());
    neap::testing::convolution_products(xs, ws, ys, {}, [&](std::int64_t a, std::int64_t f, std::int64_t b) {
      want[f] += double(x[a]) * double(dy[b]);
    });
    std::vector<float> dw[2]{start, start};
    for (int k = 0; k < 2; ++k) {
      neap::host_backend backend{k == 0 ? 1 : 3};
      std::vector<std::byte> room(static_cast<std::size_t>(
          neap::conv2d_weight_gradient_workspace(xs, ws, {}, neap::dtype::f32, backend.threads())));
      neap::conv2d_weight_gradient(backend, dense(x, xs), dense(dy, ys), dense(dw[k], ws), {}, room.data(), true);
    }
    int wrong = 0;
    for (std::size_t f = 0; f < want.size(); ++f)
      wrong += std::isfinite(want[f]) ? !(std::abs(want[f] - double(dw[0][f])) < 1e-4)
                                      : std::isfinite(dw[0][f]) || std::isnan(want[f]) != std::isnan(dw[0][f]);
    CHECK(wrong == 0);
    CHECK(same(dw[0], dw[1]));
  }
}

TEST_CASE("conv2d on random shapes") {
  neap::random_stream draw{7};
  for (int i = 0; i < neap::testing::cases(60); ++i) {
    conv2d_options o;
    o.groups = 1 + draw.below(3);
    shape x{1 + draw.below(3), o.groups * (1 + draw.below(5))}, w{o.groups * (1 + draw.below(12)), x[1] / o.groups};
    for (std::size_t a = 0; a < 2; ++a) {
      std::int64_t const k = 1 + draw.below(4);
      o.stride[a] = 1 + draw.below(3), o.padding[a] = draw.below(4), o.dilation[a] = 1 + draw.below(2);
      x.push_back(std::max<std::int64_t>(1 + draw.below(14), (k - 1) * o.dilation[a] + 1 - 2 * o.padding[a]));
      w.push_back(k);
    }
    if (i % 2) check<float>(x, w, o);
    else check<double>(x, w, o);
  }
}

TEST_CASE("conv2d refuses what does not fit") {
  CHECK_THROWS_AS(neap::conv2d_shape({1, 3, 4, 4}, {8, 4, 3, 3}), neap::error);
  CHECK_THROWS_AS(neap::conv2d_shape({1, 3, 2, 2}, {8, 3, 3, 3}), neap::error);
  CHECK_THROWS_AS(neap::conv2d_shape({1, 4, 4, 4}, {7, 2, 3, 3}, {.groups = 2}), neap::error);
}
