// Convolution and its gradients on a device, as nvcc compiles them, run by the interpreter of PTX: without a fault, every
// element written, within the rounding of sums in f32 of the exact result.
#include <neap/cuda/kernels/conv2d.hpp>

#include "../support/convolution_products.hpp"
#include "../support/interpreted_device.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

interpreted_module* kernels() {
  static auto module = interpreted_kernels("conv2d");
  if (!module) MESSAGE("this test is skipped: no nvcc");
  return module ? &*module : nullptr;
}

/// A result in f64 and the magnitude of what was added for it.
struct exact_sums {
  std::vector<double> sum, magnitude;
  std::vector<int> addends;
  explicit exact_sums(std::int64_t n)
      : sum(static_cast<std::size_t>(n)),
        magnitude(static_cast<std::size_t>(n)),
        addends(static_cast<std::size_t>(n)) {}
  void add(std::int64_t i, double x) {
    auto const u = static_cast<std::size_t>(i);
    sum[u] += x, magnitude[u] += std::abs(x), ++addends[u];
  }
  /// The first element that differs by more than rounding, in words; empty if there is none.
  std::string difference(tensor_ref const& got) const {
    auto const v = neap_test::values(got);
    if (v.size() != sum.size()) return "other extents";
    double const stored = got.element == dtype::bf16 ? 0x1p-8 : got.element == dtype::f16 ? 0x1p-11 : 0x1p-24;
    for (std::size_t i = 0; i < v.size(); ++i) {
      double const within = (addends[i] + 32) * 0x1p-24 * magnitude[i] + 1.01 * stored * std::abs(sum[i]);
      if (!(std::abs(v[i] - sum[i]) <= within))
        return "element " + std::to_string(i) + ": " + std::to_string(v[i]) + ", not " + std::to_string(sum[i]);
    }
    return {};
  }
};

struct conv_case {
  shape x, w;
  conv2d_options o = {};
  std::int64_t shift = 0;
};

void check(interpreted_module& module, conv_case const& k, dtype t, std::uint64_t seed) {
  shape const y_dims = conv2d_shape(k.x, k.w, k.o);
  CAPTURE(name_of(t));
  CAPTURE(to_string(k.x));
  CAPTURE(to_string(k.w));
  CAPTURE(to_string(y_dims));
  case_memory memory({0, 0, k.shift}, random_stream{5});
  auto const x = memory.random(t, k.x), w = memory.random(t, k.w), bias = memory.random(t, {k.w[0]}),
             dy = memory.random(t, y_dims), y = memory.unwritten(t, y_dims), plain = memory.unwritten(t, y_dims),
             dx = memory.unwritten(t, k.x), dw = memory.unwritten(t, k.w);
  exact_sums y_(elements(y_dims)), plain_(elements(y_dims)), dx_(elements(k.x)), dw_(elements(k.w));
  auto const vx = neap_test::values(x), vw = neap_test::values(w), vb = neap_test::values(bias),
             vdy = neap_test::values(dy);
  auto const at = [](std::vector<double> const& v, std::int64_t i) { return v[static_cast<std::size_t>(i)]; };
  for (std::int64_t i = 0; i < elements(y_dims); ++i) y_.add(i, at(vb, i / (y_dims[2] * y_dims[3]) % y_dims[1]));
  neap::testing::convolution_products(k.x, k.w, y_dims, k.o, [&](std::int64_t i, std::int64_t f, std::int64_t j) {
    y_.add(j, at(vx, i) * at(vw, f));
    plain_.add(j, at(vx, i) * at(vw, f));
    dx_.add(i, at(vdy, j) * at(vw, f));
    dw_.add(f, at(vdy, j) * at(vx, i));
  });

  interpreted_device device(module, memory, seed);
  auto const layout = [](tensor_ref const& r) { return tensor_layout{{r.element, r.dims}, r.strides, 0}; };
  auto const go = [&](auto const& op, std::initializer_list<tensor_ref> in, tensor_ref const& out) {
    device.scratch_bytes = 0;
    std::vector<tensor_ref> const inputs(in);
    run(device, op, {inputs, std::span(&out, 1), nullptr});
    std::vector<tensor_layout> layouts;
    for (auto const& r : in) layouts.push_back(layout(r));
    std::array const outs{layout(out)};
    CHECK(device.scratch_bytes == device_scratch(op, work_context{layouts, outs}));
  };
  extents const stride{k.o.stride[0], k.o.stride[1]}, padding{k.o.padding[0], k.o.padding[1]},
      dilation{k.o.dilation[0], k.o.dilation[1]};
  go(op::conv2d{stride, padding, dilation, k.o.groups}, {x, w, bias}, y);
  go(op::conv2d{stride, padding, dilation, k.o.groups}, {x, w}, plain);
  go(op::conv2d_grad_input{k.x, stride, padding, dilation, k.o.groups}, {dy, w}, dx);
  go(op::conv2d_grad_weight{k.w, stride, padding, dilation, k.o.groups}, {x, dy}, dw);
  CHECK(device.faults == "");
  CHECK(device.badly_written() == "");
  if (seed == 0) CHECK(device.bank_conflicts == 0);  // else lanes of a warp are at other steps of a loop
  CHECK(y_.difference(y) == "");
  CHECK(plain_.difference(plain) == "");
  CHECK(dx_.difference(dx) == "");
  CHECK(dw_.difference(dw) == "");
}

conv2d_options options(std::array<std::int64_t, 2> stride, std::array<std::int64_t, 2> padding,
                       std::array<std::int64_t, 2> dilation = {1, 1}, std::int64_t groups = 1) {
  return {stride, padding, dilation, groups};
}

}  // namespace

TEST_CASE("convolution on a device, interpreted: strides, padding, dilation, groups, odd extents") {
  auto* const module = kernels();
  if (!module) return;
  conv_case const cases[] = {
      {{1, 1, 1, 1}, {1, 1, 1, 1}},
      {{2, 3, 7, 9}, {5, 3, 3, 3}, options({1, 1}, {1, 1})},
      {{2, 3, 7, 9}, {5, 3, 3, 3}, options({2, 2}, {1, 1}), 1},
      {{2, 3, 8, 11}, {4, 3, 5, 2}, options({3, 2}, {2, 0})},
      {{1, 4, 9, 9}, {6, 4, 3, 3}, options({1, 2}, {2, 2}, {2, 3})},
      {{1, 2, 9, 10}, {3, 2, 3, 3}, options({2, 2}, {2, 2}, {2, 2})},  // most classes of pixels meet no tap
      {{2, 8, 6, 6}, {9, 8, 1, 1}},                                    // one tap; planes of 36
      {{2, 8, 8, 7}, {9, 8, 1, 1}, options({2, 2}, {0, 0})},
      {{2, 16, 4, 6}, {66, 16, 3, 3}, options({1, 1}, {1, 1})},
      {{2, 8, 4, 8}, {12, 2, 3, 3}, options({1, 1}, {1, 1}, {1, 1}, 4)},
      {{2, 5, 6, 7}, {5, 1, 3, 3}, options({1, 1}, {1, 1}, {1, 1}, 5)},  // depthwise
      {{2, 3, 6, 7}, {6, 1, 3, 2}, options({2, 2}, {1, 1}, {1, 1}, 3), 1},
      {{1, 1, 30, 40}, {2, 1, 2, 2}, options({1, 1}, {0, 0})},
      {{2, 16, 16, 16}, {6, 16, 1, 1}},  // a product of matrices
      {{3, 2, 20, 30}, {3, 2, 3, 3}, options({1, 1}, {1, 1})},
      {{1, 60, 32, 32}, {3, 60, 3, 3}, options({1, 1}, {1, 1})},
      {{0, 2, 5, 5}, {3, 2, 3, 3}},
      {{2, 0, 5, 5}, {3, 0, 3, 3}},
  };
  std::uint64_t seed = 0;
  for (auto const& c : cases)
    for (dtype t : {dtype::f32, dtype::bf16}) check(*module, c, t, seed++ % 3);
  // Groups of one channel with long planes: rows that thread blocks share.
  check(*module, {{1, 2, 24, 24}, {2, 1, 3, 3}, options({1, 1}, {1, 1}, {1, 1}, 2)}, dtype::f32, 0);
  check(*module, {{1, 2, 24, 24}, {2, 1, 3, 3}, options({1, 1}, {1, 1}, {1, 1}, 2)}, dtype::bf16, 0);
}

TEST_CASE("convolution on a device, interpreted: images and filters with strides of their own") {
  auto* const module = kernels();
  if (!module) return;
  conv2d_options const o{};
  for (dtype t : {dtype::f32, dtype::bf16}) {
    CAPTURE(name_of(t));
    case_memory memory({0, 0}, random_stream{3});
    // Channels last, and a filter stored as [KH, KW, C, O].
    tensor_ref x = memory.random(t, {2, 6, 7, 8}), w = memory.random(t, {3, 3, 8, 5});
    x.dims = {2, 8, 6, 7}, x.strides = {6 * 7 * 8, 1, 7 * 8, 8};
    w.dims = {5, 8, 3, 3}, w.strides = {1, 5, 3 * 8 * 5, 8 * 5};
    auto const y = memory.unwritten(t, {2, 5, 4, 5});
    interpreted_device device(*module, memory, 1);
    conv2d(device, x, w, {}, y, o);
    exact_sums exact(y.count());
    auto const vx = neap_test::values(x), vw = neap_test::values(w);
    neap::testing::convolution_products(x.dims, w.dims, y.dims, o, [&](std::int64_t i, std::int64_t f, std::int64_t j) {
      exact.add(j, vx[static_cast<std::size_t>(i)] * vw[static_cast<std::size_t>(f)]);
    });
    CHECK(device.faults == "");
    CHECK(exact.difference(y) == "");
  }
  CHECK(module->not_launched() == "");  // a new kernel in conv2d.cu needs a case in this file
}

TEST_CASE("convolution on a device refuses what does not fit, in one line") {
  auto* const module = kernels();
  if (!module) return;
  case_memory memory({0, 0}, random_stream{1});
  interpreted_device device(*module, memory, 0);
  auto const x = memory.random(dtype::f32, {1, 2, 5, 5}), w = memory.random(dtype::f32, {3, 2, 3, 3}),
             y = memory.random(dtype::f32, {1, 3, 4, 3});
  auto const says = [&](auto const& call, std::string const& text) {
    try {
      call();
      FAIL_CHECK("no error: " << text);
    } catch (error const& e) {
      CAPTURE(std::string(e.what()));
      CHECK(std::string(e.what()).find(text) != std::string::npos);
    }
  };
  says([&] { conv2d(device, x, w, {}, y, {}); },
       "conv2d: [1,3,4,3] is not the shape of [1,2,5,5] with filter [3,2,3,3]");
  says(
      [&] {
        conv2d(device, x, memory.random(dtype::bf16, {3, 2, 3, 3}), {}, memory.random(dtype::f32, {1, 3, 3, 3}), {});
      },
      "conv2d: element types differ");
  std::int64_t const many = std::int64_t{1} << 30;
  says(
      [&] {
        conv2d(device, {x.data, dtype::f32, {many, 1, 2, 2}, {4, 4, 2, 1}},
               {w.data, dtype::f32, {1, 1, 1, 1}, {1, 1, 1, 1}}, {},
               {y.data, dtype::f32, {many, 1, 2, 2}, {4, 4, 2, 1}}, {});
      },
      "conv2d: 4294967296 pixels or channels exceed what its kernel on a GPU counts with");
}
