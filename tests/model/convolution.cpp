#include <neap/model/functions/convolution.hpp>

#include <neap/model/model.hpp>
#include <neap/train/loss.hpp>

#include "../support/message.hpp"
#include "../support/quotients.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace neap;
using neap::testing::check_quotients;
using neap::testing::message_of;

namespace {

tensor f64(shape const& s, std::uint64_t seed) { return tensor::randn(s, seed, dtype::f64); }

void compare(std::vector<double> const& got, std::vector<double> const& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-9).scale(1e-3));
  }
}

/// One axis of a transposed convolution.
struct axis {
  std::int64_t in, filter, stride = 1, padding = 0, more = 0, dilation = 1;
  std::int64_t out() const { return (in - 1) * stride + (filter - 1) * dilation + 1 - 2 * padding + more; }
  std::int64_t place(std::int64_t i, std::int64_t tap) const { return i * stride + tap * dilation - padding; }
};

/// x (n, c, h, w), weight (c, o / groups, kh, kw), bias (o): each element of x adds its filter's picture to y.
std::vector<double> enlarged(tensor const& x, tensor const& weight, tensor const& bias, std::int64_t groups,
                             axis const& h, axis const& w) {
  auto const n = x.size(0), c = x.size(1), of_group = weight.size(1), o = of_group * groups;
  auto const from = x.values<double>(), filter = weight.values<double>(), shift = bias.values<double>();
  std::vector<double> y(static_cast<std::size_t>(n * o * h.out() * w.out()));
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = shift[i / static_cast<std::size_t>(h.out() * w.out()) % static_cast<std::size_t>(o)];
  std::size_t at = 0;
  for (std::int64_t s = 0; s < n; ++s)
    for (std::int64_t k = 0; k < c; ++k)
      for (std::int64_t i = 0; i < h.in; ++i)
        for (std::int64_t j = 0; j < w.in; ++j, ++at)
          for (std::int64_t m = 0; m < of_group; ++m)
            for (std::int64_t a = 0; a < h.filter; ++a)
              for (std::int64_t b = 0; b < w.filter; ++b) {
                auto const row = h.place(i, a), column = w.place(j, b), channel = k / (c / groups) * of_group + m;
                if (row < 0 || column < 0 || row >= h.out() || column >= w.out()) continue;
                y[static_cast<std::size_t>(((s * o + channel) * h.out() + row) * w.out() + column)] +=
                    from[at] * filter[static_cast<std::size_t>(((k * of_group + m) * h.filter + a) * w.filter + b)];
              }
  return y;
}

void check_place(std::string const& what, int line, std::string_view text) {
  CAPTURE(what);
  CHECK(what.starts_with("convolution.cpp:" + std::to_string(line) + ": "));
  CHECK(what.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("a transposed convolution adds each element's picture of the filter, at random extents and options") {
  random_stream draw(91);
  for (int trial = 0; trial < 60; ++trial) {
    CAPTURE(trial);
    auto const below = [&](std::uint32_t n) { return static_cast<std::int64_t>(draw.below(n)); };
    auto const random_axis = [&] {
      axis a{1 + below(5), 1 + below(4), 1 + below(3), 0, 0, 1 + below(2)};
      a.more = below(static_cast<std::uint32_t>(a.stride));
      a.padding = std::min(below(3), (a.out() - 1) / 2);
      return a;
    };
    auto const h = trial % 2 ? axis{1, 1} : random_axis(), w = random_axis();
    auto const n = 1 + below(2), groups = 1 + below(2), c = groups * (1 + below(3)), of_group = 1 + below(2);
    auto const x = f64({n, c, h.in, w.in}, 1), bias = f64({groups * of_group}, 3),
               weight = f64({c, of_group, h.filter, w.filter}, 2);
    auto const expected = enlarged(x, weight, bias, groups, h, w);
    auto const y = conv_transpose2d(x, weight, bias,
                                    {.stride = {h.stride, w.stride},
                                     .padding = {h.padding, w.padding},
                                     .output_padding = {h.more, w.more},
                                     .dilation = {h.dilation, w.dilation},
                                     .groups = groups});
    CHECK(y.shape() == shape{n, groups * of_group, h.out(), w.out()});
    compare(y.values<double>(), expected);
    if (trial % 2 == 0) continue;
    auto const z = conv_transpose1d(
        squeeze(x, 2), squeeze(weight, 2), bias,
        {.stride = w.stride, .padding = w.padding, .output_padding = w.more, .dilation = w.dilation, .groups = groups});
    CHECK(z.shape() == shape{n, groups * of_group, w.out()});
    compare(z.values<double>(), expected);
  }
}

TEST_CASE("it is the transpose of the convolution of the same options: <conv(x), y> = <x, conv_transpose(y)>") {
  op::conv2d const how{{2, 3}, {1, 0}, {1, 2}, 2};
  auto const x = f64({2, 4, 8, 9}, 1), w = f64({6, 2, 3, 2}, 2);
  auto const cx = conv2d(x, w, {}, how), y = f64(cx.shape(), 3);
  // 8 and 9 are 2 * 3 + 2 + 1 - 2 + 1 and 3 * 2 + 2 + 1: one row more than the filter reaches
  auto const ty = conv_transpose2d(
      y, w, {},
      {.stride = how.stride, .padding = how.padding, .output_padding = {1, 0}, .dilation = how.dilation, .groups = 2});
  REQUIRE(ty.shape() == x.shape());
  CHECK(sum(cx * y).item<double>() == doctest::Approx(sum(x * ty).item<double>()));
}

TEST_CASE("a convolution of sequences against plain loops") {
  random_stream draw(92);
  for (int trial = 0; trial < 30; ++trial) {
    CAPTURE(trial);
    auto const below = [&](std::uint32_t n) { return static_cast<std::int64_t>(draw.below(n)); };
    conv1d_form const how{1 + below(3), below(3), 1 + below(2), 1 + below(2)};
    auto const n = 1 + below(2), c = how.groups * (1 + below(3)), o = how.groups * (1 + below(3)), k = 1 + below(3);
    auto const reach = (k - 1) * how.dilation + 1, l = reach + below(6);
    auto const x = f64({n, c, l}, 1), w = f64({o, c / how.groups, k}, 2), b = f64({o}, 3);
    auto const xs = x.values<double>(), ws = w.values<double>(), bs = b.values<double>();
    std::vector<double> expected;
    auto const of_group = c / how.groups;
    for (std::int64_t s = 0; s < n; ++s)
      for (std::int64_t f = 0; f < o; ++f)
        for (std::int64_t i = -how.padding; i + reach <= l + how.padding; i += how.stride) {
          double y = bs[static_cast<std::size_t>(f)];
          for (std::int64_t j = 0; j < of_group; ++j)
            for (std::int64_t t = 0; t < k; ++t)
              if (auto const p = i + t * how.dilation; p >= 0 && p < l)
                y += xs[static_cast<std::size_t>((s * c + f / (o / how.groups) * of_group + j) * l + p)] *
                     ws[static_cast<std::size_t>((f * of_group + j) * k + t)];
          expected.push_back(y);
        }
    auto const y = conv1d(x, w, b, how);
    CHECK(y.rank() == 3);
    compare(y.values<double>(), expected);
  }
}

TEST_CASE("gradients of modules of convolutions are the difference quotients") {
  struct {
    nn::conv1d a{2, 4, 3, {.stride = 2, .padding = 1, .groups = 2}};
    nn::conv_transpose1d b{4, 2, 4, {.stride = 2, .padding = 1, .groups = 2}};
    nn::conv_transpose2d c{2, 3, 3, {.stride = 2, .output_padding = 1, .dilation = 2}};
  } m;
  auto const x = f64({2, 2, 8}, 1), image = f64({2, 2, 3, 2}, 2);
  check_quotients(m, [&] { return sum(square(tanh(m.b(m.a(x))))) + sum(square(m.c(image))); });
  CHECK(m.b(m.a(x)).shape() == x.shape());
  CHECK(m.c(image).shape() == shape{2, 3, 10, 8});
}

TEST_CASE("options of convolutions that cannot be are told with the line") {
  auto const x = tensor::ones({2, 4, 5, 5}), w = tensor::ones({4, 2, 3, 3});
  tensor const none, flat = select(x, 0, 0), line = select(w, 3, 0), three = slice(w, 0, 0, 3);
  conv_transpose2d_form const more{.stride = {2, 2}, .output_padding = {0, 2}}, wide{.padding = {4, 0}};
  check_place(message_of([&] { conv_transpose2d(flat, w, none); }), __LINE__,
              "conv_transpose2d: takes (batch, channels, rows, columns), got f32[4,5,5]");
  check_place(message_of([&] { conv_transpose2d(x, line, none); }), __LINE__,
              "conv_transpose2d: the filter needs as many axes as the input, f32[2,4,5,5] with filter f32[4,2,3]");
  check_place(message_of([&] { conv_transpose2d(x, three, none); }), __LINE__, "does not take the input's channels");
  check_place(message_of([&] { conv_transpose2d(x, cast(w, dtype::f64), none); }), __LINE__, "element types differ");
  check_place(message_of([&] { conv_transpose2d(x, w, tensor::ones({3})); }), __LINE__,
              "the shift must have shape [2], got [3]");
  check_place(message_of([&] { conv_transpose2d(x, w, none, {.groups = 3}); }), __LINE__, "3 groups do not divide");
  check_place(message_of([&] { conv_transpose2d(x, w, none, more); }), __LINE__,
              "output_padding must be at least 0 and less than the stride 2, not 2");
  check_place(message_of([&] { conv_transpose2d(x, w, none, {{0, 1}}); }), __LINE__, "must be positive");
  check_place(message_of([&] { conv_transpose2d(x, w, none, wide); }), __LINE__, "beside a padding of 4");
  check_place(message_of([&] { conv_transpose2d(x, w, none, {.stride = {2}}); }), __LINE__, "two numbers each");
  check_place(message_of([&] { conv_transpose1d(x, w, {}); }), __LINE__,
              "conv_transpose1d: takes (batch, channels, length), got f32[2,4,5,5]");
  auto const s = tensor::ones({2, 4, 5}), f = tensor::ones({6, 4, 3});
  check_place(message_of([&] { conv1d(x, f, {}); }), __LINE__, "conv1d: takes (batch, channels, length), got");
  check_place(message_of([&] { conv1d(s, w, {}); }), __LINE__,
              "conv1d: the filter takes (filters, channels of a group");
  check_place(message_of([&] { conv1d(s, f, {}, {.groups = 4}); }), __LINE__,
              "conv1d: channels do not fit the groups, [2,4,5] with filter [6,4,3] and groups 4");
  check_place(message_of([&] { conv1d(s, f, {}, {.dilation = 3}); }), __LINE__, "larger than the padded input");
  check_place(message_of([&] { conv1d(s, f, {}, {.stride = 0}); }), __LINE__, "must be positive");
  for (std::int64_t groups : {0, 3})
    check_place(message_of([&] { nn::conv_transpose2d(4, 6, 3, {.groups = groups}); }), __LINE__,
                "conv_transpose2d: 4 and 6 channels do not divide into");
  check_place(message_of([&] { nn::conv1d(4, 4, 3, {.groups = 3}); }), __LINE__, "conv1d: 4 and 4 channels");
}
