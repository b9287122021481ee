// A convolution over volumes or films in (batch, channels, planes, rows, columns).
#pragma once

#include <neap/model/nn/conv2d.hpp>

namespace neap { inline namespace v0 { namespace nn {

struct conv3d {
  parameter weight;  // (out, in / groups, size, size, size)
  parameter bias;    // (out); empty without bias
  conv2d_options options;

  conv3d() = default;
  conv3d(std::int64_t in, std::int64_t out, std::int64_t size, conv2d_options o = {},
         std::source_location at = std::source_location::current());

  /// x (n, in, d, h, w) -> (n, out, d', h', w')
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<conv3d> auto& self) { return std::tie(self.weight, self.bias, self.options); }
  static constexpr std::array neap_names{"weight", "bias", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/conv3d.ipp>
#endif
