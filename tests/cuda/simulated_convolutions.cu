// A backend with a convolution library of the test's: which convolutions go to it, with which operands and scratch memory.
#include <neap/cuda/convolutions.hpp>

#include "../support/device/simulated_device.hpp"
#include "../support/device_tensor.hpp"
#include "../support/message.hpp"

#include <neap/cuda.hpp>
#include <neap/cuda/kernels/conv2d.hpp>
#include <neap/cuda/launch.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

/// Takes f32 alone; its results are bytes of 0x3f each.
class marking_library final : public cuda_convolution_library {
 public:
  static constexpr bytes_t scratch = 4096;
  std::vector<cuda_convolution> asked, ran;
  void* last_scratch = nullptr;

  cuda_library_way way(cuda_convolution const& c) override {
    asked.push_back(c);
    if (c.element == dtype::f32) return {true, {}};
    return {false, "the test's library takes f32"};
  }
  bytes_t scratch_bytes(cuda_convolution const& c) override { return c.element == dtype::f32 ? scratch : 0; }
  void run(cudaStream_t stream, cuda_convolution const& c, void* x, void* w, void* y, void* at) override {
    ran.push_back(c);
    last_scratch = at;
    auto const& t = c.part == convolution_part::forward ? c.y : c.part == convolution_part::input_gradient ? c.x : c.w;
    void* const to = c.part == convolution_part::forward ? y : c.part == convolution_part::input_gradient ? x : w;
    check_cuda(
        cudaMemsetAsync(to, 0x3f, static_cast<std::size_t>(t.dims[0] * t.dims[1] * t.dims[2] * t.dims[3]) * 4, stream),
        "a fill");
  }
};
float const mark = [] {
  std::uint32_t const bits = 0x3f3f3f3f;
  float x = 0;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}();

struct with_library {
  cuda_backend backend;
  std::shared_ptr<marking_library> library = std::make_shared<marking_library>();
  with_library() { backend.use_convolutions(library); }
};

}  // namespace

TEST_CASE("a library gets each part with its extents, strides and options; a bias is added to its result") {
  simulated_device::reset(1);
  with_library d;
  d.backend.reserve_scratch(marking_library::scratch);
  conv2d_options const o{{2, 1}, {1, 0}, {1, 2}, 2};
  shape const x_dims{1, 4, 9, 6}, w_dims{6, 2, 3, 2}, y_dims = conv2d_shape(x_dims, w_dims, o);
  device_tensor<float> x(x_dims, 1), w(w_dims, 2), bias({6}, 3), y(y_dims, 4), dx(x_dims, 5), dw(w_dims, 6);
  conv2d(d.backend, x.ref, w.ref, bias.ref, y.ref, o);
  conv2d_input_gradient(d.backend, y.ref, w.ref, dx.ref, o);
  conv2d_weight_gradient(d.backend, x.ref, y.ref, dw.ref, o);
  REQUIRE(d.library->ran.size() == 3);
  int part = 0;
  for (auto const& c : d.library->ran) {
    CHECK(static_cast<int>(c.part) == part++);
    CHECK(c.x.dims == std::array<std::int64_t, 4>{1, 4, 9, 6});
    CHECK(c.x.strides == std::array<std::int64_t, 4>{216, 54, 6, 1});
    CHECK(c.w.dims == std::array<std::int64_t, 4>{6, 2, 3, 2});
    CHECK(c.y.dims == std::array<std::int64_t, 4>{1, 6, y_dims[2], y_dims[3]});
    CHECK(c.stride == o.stride);
    CHECK(c.padding == o.padding);
    CHECK(c.dilation == o.dilation);
  }
  CHECK(d.library->last_scratch == d.backend.scratch(0));
  auto const got = y.read(d.backend.stream());
  std::size_t different = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    auto const channel = static_cast<std::int64_t>(i) / (y_dims[2] * y_dims[3]) % 6;
    different += got[i] != mark + bias.host[static_cast<std::size_t>(channel)];
  }
  CHECK(different == 0);
  for (auto const* t : {&dx, &dw})
    for (float const v : t->read(d.backend.stream())) different += v != mark;
  CHECK(different == 0);
  CHECK(simulated_device::faults() == "");
  CHECK(simulated_device::races() == "");
}

TEST_CASE("what it does not take, and products of matrices that a product library makes, do not go there") {
  simulated_device::reset(2);
  with_library d;
  device_tensor<bf16> x({1, 4, 16, 16}, 1), w({8, 4, 1, 1}, 2), y({1, 8, 16, 16}, 3);
  device_tensor<float> fx({1, 4, 16, 16}, 1), fw({8, 4, 1, 1}, 2), fy({1, 8, 16, 16}, 3), shifted({1, 4, 16, 16}, 1, 1);
  auto const reason = [&](tensor_ref const& a, tensor_ref const& b, tensor_ref const& c) {
    return std::string(conv2d_way(d.backend, convolution_part::forward, a, b, c).reason);
  };
  CHECK(reason(x.ref, w.ref, y.ref) == "the test's library takes f32");
  CHECK(reason(fx.ref, fw.ref, fy.ref) == "");
  CHECK(reason(shifted.ref, fw.ref, fy.ref) == "addresses are no multiples of 16 bytes");
  // Without scratch memory of the backend the call is refused, by name.
  CHECK(message_of([&] {
          conv2d(d.backend, fx.ref, fw.ref, {}, fy.ref, {});
        }).find("a kernel takes 4096 bytes of scratch memory, and 0 are reserved") != std::string::npos);

  struct products final : cuda_product_library {
    using cuda_product_library::run, cuda_product_library::way;
    bytes_t scratch_bytes() const override { return 0; }
    cuda_library_way way(cuda_product const&) override { return {false, "a test"}; }
    void run(cudaStream_t, cuda_product const&, void const*, void const*, void*, bool, void*) override {}
  };
  d.backend.use_products(std::make_shared<products>());
  CHECK(reason(fx.ref, fw.ref, fy.ref) == "it is a product of matrices");
  auto const part = [&](convolution_part p) {
    return std::string(conv2d_way(d.backend, p, fx.ref, fw.ref, fy.ref).reason);
  };
  CHECK(part(convolution_part::input_gradient) == "it is a product of matrices");
  CHECK(part(convolution_part::weight_gradient) == "");
}

TEST_CASE("an executable reserves what the library takes, or our own kernel if that takes more") {
  simulated_device::reset(3);
  with_library d;
  op::conv2d const forward{};
  auto const layout = [](shape const& s, dtype t = dtype::f32) { return tensor_layout{{t, s}, dense_strides(s)}; };
  shape const small{1, 1, 4, 4}, filter{1, 1, 3, 3}, result{1, 1, 2, 2};
  auto const bytes = [&](shape const& x, shape const& w, shape const& y, dtype t) {
    std::vector<tensor_layout> const in{layout(x, t), layout(w, t)}, out{layout(y, t)};
    return detail::scratch_of<op::conv2d>(d.backend, &forward, work_context{in, out});
  };
  CHECK(bytes(small, filter, result, dtype::f32) == marking_library::scratch);
  shape const x{1, 2048, 16, 16}, w{8, 2048, 1, 1}, y{1, 8, 16, 16};  // a product of matrices, its k in four parts
  bytes_t const own = 4 * 8 * 256 * 4;
  CHECK(own > marking_library::scratch);
  CHECK(bytes(x, w, y, dtype::bf16) == own);
  CHECK(bytes(x, w, y, dtype::f32) == own);
}
