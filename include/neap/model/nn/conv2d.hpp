// A convolution over images in (batch, channels, height, width).
#pragma once

#include <neap/model/functions.hpp>
#include <neap/model/parameter.hpp>

#include <array>
#include <string>
#include <tuple>

namespace neap::inline v0 {

namespace detail {
/// The channels of one group, of `channels`. Throws neap::error if those of input and output do not divide into groups.
inline std::int64_t of_a_group(char const* who, std::int64_t channels, std::int64_t groups, std::int64_t in,
                               std::int64_t out) {
  if (groups < 1 || in % groups != 0 || out % groups != 0)
    throw_error(context_access::place({}),
                {who, ": ", in, " and ", out, " channels do not divide into ", groups, " groups"});
  return channels / groups;
}
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
         std::source_location at = std::source_location::current())
      : options(o) {
    place_scope const here(at);
    auto const c = neap::detail::of_a_group("conv2d", in, o.groups, in, out);
    weight = parameter({out, c, size, size}, initialiser::fan_in(c * size * size), o.element);
    if (o.bias) bias = parameter({out}, initialiser::fan_in(c * size * size), o.element);
  }

  /// x (n, in, h, w) -> (n, out, h', w')
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    auto const& o = options;
    return neap::conv2d(x, weight, bias,
                        {.stride = {o.stride, o.stride},
                         .padding = {o.padding, o.padding},
                         .dilation = {o.dilation, o.dilation},
                         .groups = o.groups});
  }

  friend auto neap_fields(conv2d& self) { return std::tie(self.weight, self.bias, self.options); }
  static constexpr std::array neap_names{"weight", "bias", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

}  // namespace nn
}  // namespace neap::inline v0
