// A backend with cuDNN as its convolution library, on the simulated device: results, which convolutions go where, what is
// planned and what is kept.
#include <neap/cuda/cudnn.hpp>

#include "../support/convolution_products.hpp"
#include "../support/device/simulated_device.hpp"
#include "../support/device_tensor.hpp"
#include "../support/message.hpp"
#include "with_cudnn.hpp"

#include <neap/cuda.hpp>
#include <neap/cuda/kernels/conv2d.hpp>
#include <neap/cuda/launch.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

struct conv_case {
  shape x, w;
  conv2d_options o = {};
};

template <class T>
std::size_t differences(std::vector<T> const& got, std::vector<float> const& want) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < want.size(); ++i) n += static_cast<float>(got[i]) != static_cast<float>(T(want[i]));
  return n;
}

/// All parts of a convolution, with a bias and without: elements are small multiples of 1/8, so that f32 sums are exact.
template <class T>
void check(with_cudnn& d, conv_case const& k, bool by_library, std::int64_t shift = 0) {
  CAPTURE(to_string(k.x));
  CAPTURE(to_string(k.w));
  CAPTURE(name_of(dtype_of<T>));
  shape const dims = conv2d_shape(k.x, k.w, k.o);
  device_tensor<T> x(k.x, 1, shift), w(k.w, 2), dy(dims, 3), bias({k.w[0]}, 4), y(dims, 5), plain(dims, 6), dx(k.x, 7),
      dw(k.w, 8);
  std::vector<float> y_(y.host.size()), plain_(y.host.size()), dx_(dx.host.size()), dw_(dw.host.size());
  convolution_products(k.x, k.w, dims, k.o, [&](std::int64_t i, std::int64_t f, std::int64_t j) {
    auto const a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(f), c = static_cast<std::size_t>(j);
    plain_[c] += static_cast<float>(x.host[a]) * static_cast<float>(w.host[b]);
    dx_[a] += static_cast<float>(dy.host[c]) * static_cast<float>(w.host[b]);
    dw_[b] += static_cast<float>(dy.host[c]) * static_cast<float>(x.host[a]);
  });
  for (std::size_t i = 0; i < y_.size(); ++i) {
    auto const channel = static_cast<std::int64_t>(i) / (dims[2] * dims[3]) % dims[1];
    // The library rounds, then the bias is added.
    float const product = by_library ? static_cast<float>(T(plain_[i])) : plain_[i];
    y_[i] = product + static_cast<float>(bias.host[static_cast<std::size_t>(channel)]);
  }
  auto const way = conv2d_way(d.backend, convolution_part::forward, x.ref, w.ref, y.ref, k.o);
  CAPTURE(std::string(way.reason));
  CHECK(way.by_library == by_library);
  CHECK(way.reason.empty() == by_library);
  auto const calls = simulated_device::calls("cudnnBackendExecute");
  conv2d(d.backend, x.ref, w.ref, bias.ref, y.ref, k.o);
  conv2d(d.backend, x.ref, w.ref, {}, plain.ref, k.o);
  conv2d_input_gradient(d.backend, dy.ref, w.ref, dx.ref, k.o);
  if (shift == 0) conv2d_weight_gradient(d.backend, x.ref, dy.ref, dw.ref, k.o);
  CHECK(simulated_device::calls("cudnnBackendExecute") - calls == (by_library ? 4 : shift == 0 ? 0 : 1));
  auto const stream = d.backend.stream();
  CHECK(differences(y.read(stream), y_) == 0);
  CHECK(differences(plain.read(stream), plain_) == 0);
  CHECK(differences(dx.read(stream), dx_) == 0);
  if (shift == 0) CHECK(differences(dw.read(stream), dw_) == 0);
}

}  // namespace

TEST_CASE(
    "convolutions by cuDNN: types, strides, paddings, dilations, groups, biases; the others go to our own kernels") {
  simulated_device::reset(3);
  with_cudnn d;
  conv_case const cases[] = {{{2, 3, 7, 8}, {5, 3, 3, 3}},
                             {{1, 4, 9, 6}, {6, 2, 3, 2}, {{2, 1}, {1, 0}, {1, 2}, 2}},
                             {{2, 4, 5, 5}, {8, 1, 3, 3}, {{1, 1}, {1, 1}, {1, 1}, 4}},
                             {{1, 3, 8, 8}, {4, 3, 1, 1}, {{2, 2}, {0, 0}, {1, 1}, 1}}};
  for (auto const& k : cases) {
    check<float>(d, k, true);
    check<bf16>(d, k, true);
    check<f16>(d, k, true);
  }
  check<double>(d, cases[0], false);
  CHECK(simulated_device::faults() == "");
  CHECK(simulated_device::races() == "");
}

TEST_CASE("what the library does not take, or may not, goes to our own kernels with the reason") {
  simulated_device::reset(4);
  with_cudnn d({.scratch = 100});
  conv_case const k{{2, 3, 7, 8}, {5, 3, 3, 3}};
  device_tensor<float> x(k.x, 1), w(k.w, 2), y(conv2d_shape(k.x, k.w), 3), shifted(k.x, 1, 1);
  auto const reason = [](with_cudnn& on, tensor_ref const& a, tensor_ref const& b, tensor_ref const& c) {
    return std::string(conv2d_way(on.backend, convolution_part::forward, a, b, c).reason);
  };
  CHECK(reason(d, x.ref, w.ref, y.ref) == "cuDNN takes more scratch memory for it than it may have");
  check<float>(d, k, false);
  with_cudnn full;
  CHECK(reason(full, x.ref, w.ref, y.ref) == "");
  CHECK(reason(full, shifted.ref, w.ref, y.ref) == "addresses are no multiples of 16 bytes");
  auto turned = x.ref;  // rows and columns exchanged
  turned.dims = {2, 3, 8, 7}, turned.strides = {168, 56, 1, 8};
  device_tensor<float> z({2, 5, 6, 5}, 3);
  CHECK(reason(full, turned, w.ref, z.ref) == "cuDNN has no algorithm for it");
  conv2d(full.backend, turned, w.ref, {}, z.ref, {});
  CHECK(simulated_device::calls("cudnnBackendExecute") == 0);
  cuda_backend alone;
  CHECK(conv2d_way(alone, convolution_part::forward, x.ref, w.ref, y.ref).reason ==
        "the backend has no convolution library");
  CHECK(simulated_device::faults() == "");
}

TEST_CASE("of f32 no operand is rounded, unless tf32 is allowed; each convolution is planned once") {
  simulated_device::reset(5);
  conv_case const k{{1, 2, 6, 6}, {3, 2, 3, 3}};
  auto const engine = [&](bool tf32, dtype t) {
    with_cudnn d({.tf32 = tf32});
    shape const dims = conv2d_shape(k.x, k.w);
    auto const layout = [&](shape const& s) { return tensor_ref{nullptr, t, s, dense_strides(s)}; };
    auto const made = simulated_device::calls("cuDNN's plans");
    for (int i = 0; i < 3; ++i)
      CHECK(conv2d_way(d.backend, convolution_part::forward, layout(k.x), layout(k.w), layout(dims)).by_library);
    CHECK(d.library->plans() == 1);
    auto const text = d.library->text();
    auto const at = text.find("\",", text.rfind("\n\""));
    CHECK(simulated_device::calls("cuDNN's plans") > made);
    return text.substr(at + 2, 1);
  };
  CHECK(engine(false, dtype::f32) == "5");  // neither of winograd, nor on tensor cores, nor of a terabyte
  CHECK(engine(true, dtype::f32) == "3");
  CHECK(engine(false, dtype::bf16) == "3");
}

TEST_CASE("without a device there is one line; a call that is refused names the convolution") {
  simulated_device::reset();
  cuda_device const device = cuda_backend().device();
  simulated_device::reset(0, {.driver = 0});
  auto const none = message_of([&] { cudnn library(device); });
  CHECK(none.find("cudnn: no handle of the library: ") != none.npos);
  CHECK(none.find('\n') == none.npos);

  simulated_device::reset();
  with_cudnn d;
  device_tensor<float> x({2, 3, 7, 8}, 1), w({5, 3, 3, 3}, 2), y({2, 5, 5, 6}, 3);
  simulated_device::fail("cudnnBackendExecute", 1, cudaErrorLaunchFailure);
  auto const refused = message_of([&] { conv2d(d.backend, x.ref, w.ref, {}, y.ref, {}); });
  CAPTURE(refused);
  CHECK(refused.find("cudnn: f32 convolution of [2,3,7,8] and [5,3,3,3], stride [1,1]") != refused.npos);
  CHECK(d.library->properties() == "{\"deviceName\":\"simulated\"}");
}
