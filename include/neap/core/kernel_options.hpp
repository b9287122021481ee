// What operators and their kernels tell one another: plain data that operators have as attributes or make of them.
#pragma once

#include <array>
#include <cstdint>

namespace neap { inline namespace v0 {

enum class reduction : std::uint8_t { sum, mean, max, min, product };

/// What becomes of the losses of the rows or elements.
enum class loss_reduction : std::uint8_t { none, mean, sum };

struct conv2d_options {  // (rows, columns)
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> padding{0, 0};
  std::array<std::int64_t, 2> dilation{1, 1};
  std::int64_t groups = 1;
};

struct pool2d_options {  // (rows, columns)
  std::array<std::int64_t, 2> window{2, 2};
  std::array<std::int64_t, 2> stride{2, 2};
  std::array<std::int64_t, 2> padding{0, 0};  // at most half a window
  bool count_padding = true;                  // averages divide by the whole padded window, else by what lies inside
};

enum class interpolation : std::uint8_t { nearest, bilinear };

struct interpolate_options {
  interpolation mode = interpolation::nearest;
  bool align_corners = false;  // bilinear: corner pixels' centres coincide, else the images' borders
};

}}  // namespace neap::v0
