// A convolution over sequences in (batch, channels, length).
#pragma once

#include <neap/model/nn/conv2d.hpp>

namespace neap { inline namespace v0 { namespace nn {

using conv1d_options = conv2d_options;

struct conv1d {
  parameter weight;  // (out, in / groups, size)
  parameter bias;    // (out); empty without bias
  conv1d_options options;

  conv1d() = default;
  conv1d(std::int64_t in, std::int64_t out, std::int64_t size, conv1d_options o = {},
         std::source_location at = std::source_location::current());

  /// x (n, in, l) -> (n, out, l')
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<conv1d> auto& self) { return std::tie(self.weight, self.bias, self.options); }
  static constexpr std::array neap_names{"weight", "bias", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/conv1d.ipp>
#endif
