// Transposed convolutions over images in (batch, channels, height, width) and sequences in (batch, channels, length): they
// enlarge by their stride, with weights, where a convolution of the same options shrinks.
#pragma once

#include <neap/model/nn/conv2d.hpp>

namespace neap { inline namespace v0 { namespace nn {

struct conv_transpose_options {
  std::int64_t stride = 1, padding = 0, output_padding = 0, dilation = 1, groups = 1;
  bool bias = true;
  dtype element = dtype::f32;
};

struct conv_transpose2d {
  parameter weight;  // (in, out / groups, size, size)
  parameter bias;    // (out); empty without bias
  conv_transpose_options options;

  conv_transpose2d() = default;
  conv_transpose2d(std::int64_t in, std::int64_t out, std::int64_t size, conv_transpose_options o = {},
                   std::source_location at = std::source_location::current());

  /// x (n, in, h, w) -> (n, out, h', w')
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<conv_transpose2d> auto& self) {
    return std::tie(self.weight, self.bias, self.options);
  }
  static constexpr std::array neap_names{"weight", "bias", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

struct conv_transpose1d {
  parameter weight;  // (in, out / groups, size)
  parameter bias;    // (out); empty without bias
  conv_transpose_options options;

  conv_transpose1d() = default;
  conv_transpose1d(std::int64_t in, std::int64_t out, std::int64_t size, conv_transpose_options o = {},
                   std::source_location at = std::source_location::current());

  /// x (n, in, l) -> (n, out, l')
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<conv_transpose1d> auto& self) {
    return std::tie(self.weight, self.bias, self.options);
  }
  static constexpr std::array neap_names{"weight", "bias", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/conv_transpose.ipp>
#endif
