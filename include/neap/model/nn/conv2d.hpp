// A convolution over images in (batch, channels, height, width).
#pragma once

#include <neap/model/functions.hpp>
#include <neap/model/parameter.hpp>

#include <array>
#include <string>
#include <tuple>

namespace neap { inline namespace v0 {

namespace detail {
/// The channels of one group, of `channels`. Throws neap::error if those of input and output do not divide into groups.
std::int64_t of_a_group(char const* who, std::int64_t channels, std::int64_t groups, std::int64_t in, std::int64_t out);
}  // namespace detail

namespace nn {

struct conv2d_options {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  dtype element = dtype::f32;
};

struct conv2d {
  parameter weight;  // (out, in / groups, size, size)
  parameter bias;    // (out); empty without bias
  conv2d_options options;

  conv2d() = default;
  conv2d(std::int64_t in, std::int64_t out, std::int64_t size, conv2d_options o = {},
         std::source_location at = std::source_location::current());

  /// x (n, in, h, w) -> (n, out, h', w')
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<conv2d> auto& self) { return std::tie(self.weight, self.bias, self.options); }
  static constexpr std::array neap_names{"weight", "bias", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

}  // namespace nn
}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/conv2d.ipp>
#endif
