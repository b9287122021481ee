// Plans of the real cuDNN for an H100, made without one: it takes the graphs that neap builds, and keeps to the options.
#include <neap/cuda/cudnn.hpp>

#include "../support/h100_properties.hpp"
#include "../support/message.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>

using namespace neap;
using namespace neap::testing;

namespace {

struct layer {
  std::int64_t batch, in, side, out, taps, stride = 1, padding = 0, dilation = 1, groups = 1;

  cuda_convolution operator()(convolution_part part, dtype t) const {
    std::int64_t const result = (side + 2 * padding - (taps - 1) * dilation - 1) / stride + 1;
    auto const dense = [](std::array<std::int64_t, 4> d) {
      return library_tensor{d, {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}};
    };
    return {part,
            t,
            dense({batch, in, side, side}),
            dense({out, in / groups, taps, taps}),
            dense({batch, out, result, result}),
            {stride, stride},
            {padding, padding},
            {dilation, dilation}};
  }
};

constexpr std::array parts{convolution_part::forward, convolution_part::input_gradient,
                           convolution_part::weight_gradient};
constexpr std::array types{dtype::f32, dtype::f16, dtype::bf16};

}  // namespace

TEST_CASE("the layers of ResNet-50, and odd, dilated, grouped and strided ones, are planned in all types") {
  cudnn library{std::string(h100_properties)};
  int planned = 0;
  for (layer const& l :
       {layer{64, 3, 224, 64, 7, 2, 3}, layer{64, 64, 56, 64, 3, 1, 1}, layer{64, 64, 56, 256, 1},
        layer{64, 128, 56, 128, 3, 2, 1}, layer{64, 256, 56, 512, 1, 2}, layer{64, 512, 7, 512, 3, 1, 1},
        layer{2, 3, 9, 5, 3}, layer{2, 6, 9, 10, 3, 1, 2, 2, 2}, layer{2, 32, 28, 32, 3, 1, 1, 1, 32}})
    for (auto const part : parts)
      for (auto const t : types) {
        auto const c = l(part, t);
        auto const way = library.way(c);
        CAPTURE(library.text());
        CHECK(way.by_library);
        CHECK(library.scratch_bytes(c) <= cudnn_options{}.scratch);
        CHECK(library.plans() == ++planned);
        CHECK(library.way(c).by_library);
        CHECK(library.plans() == planned);
      }
}

TEST_CASE("algorithms keep to the options, and what has none has a reason") {
  layer const l{8, 64, 28, 64, 3, 1, 1};
  auto const c = l(convolution_part::forward, dtype::bf16);
  cudnn rich{std::string(h100_properties)};
  REQUIRE(rich.way(c).by_library);
  REQUIRE(rich.scratch_bytes(c) > 0);
  cudnn poor(std::string(h100_properties), {.scratch = 0});
  auto const way = poor.way(c);
  CHECK(poor.scratch_bytes(c) == 0);
  if (!way.by_library) CHECK(way.reason == "cuDNN takes more scratch memory for it than it may have");

  // Of f32, tensor cores round the operands: with tf32 other algorithms are taken.
  auto const exact = l(convolution_part::forward, dtype::f32);
  cudnn rounding(std::string(h100_properties), {.tf32 = true});
  REQUIRE(rounding.way(exact).by_library);
  REQUIRE(rich.way(exact).by_library);
  auto const row = [&](cudnn const& library) {
    auto const text = library.text();
    auto const at = text.find("\"f32 convolution");
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK(row(rounding) != row(rich));

  auto other = exact;
  other.element = dtype::f64;
  CHECK(rich.way(other).reason == "cuDNN is used for f32, f16 and bf16");
  other = exact;
  other.x.dims[0] = other.y.dims[0] = 0;
  CHECK(rich.way(other).reason == "the convolution has no elements");
  other = exact;
  other.y.dims[2] = 5;
  CHECK(!rich.way(other).by_library);
  CHECK(!rich.way(other).reason.empty());
}

TEST_CASE("properties of a device are text, and what is none has one line") {
  cudnn const library{std::string(h100_properties)};
  CHECK(library.properties() == h100_properties);
  CHECK(library.text().starts_with("# cuDNN 9"));
  CHECK(message_of([] { cudnn wrong{std::string("{}")}; }).find("cudnn: properties of a device, from text: ") !=
        std::string::npos);
  cudnn elsewhere{std::string(h100_properties)};
  layer const l{2, 3, 9, 5, 3};
  CHECK(message_of([&] {
          elsewhere.run(nullptr, l(convolution_part::forward, dtype::f32), nullptr, nullptr, nullptr, nullptr);
        }).find("planned for a device that is not here") != std::string::npos);
  // There is no driver here, or one of a GPU.
  auto const device = find_cuda_device();
  if (!device)
    CHECK(message_of([] { cudnn none{cuda_device{}}; }).find("cudnn: no handle of the library: ") != std::string::npos);
}
