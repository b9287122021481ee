// A convolution over volumes or films in (batch, channels, planes, rows, columns).
#pragma once

#include <neap/model/nn/conv2d.hpp>

namespace neap::inline v0::nn {

struct conv3d {
  parameter weight;  // (out, in / groups, size, size, size)
  parameter bias;    // (out); empty without bias
  conv2d_options options;

  conv3d() = default;
  conv3d(std::int64_t in, std::int64_t out, std::int64_t size, conv2d_options o = {},
         std::source_location at = std::source_location::current())
      : options(o) {
    place_scope const here(at);
    auto const c = neap::detail::of_a_group("conv3d", in, o.groups, in, out), fan = c * size * size * size;
    weight = parameter({out, c, size, size, size}, initialiser::fan_in(fan), o.element);
    if (o.bias) bias = parameter({out}, initialiser::fan_in(fan), o.element);
  }

  /// x (n, in, d, h, w) -> (n, out, d', h', w')
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    auto const& o = options;
    return neap::conv3d(x, weight, bias,
                        {.stride = {o.stride, o.stride, o.stride},
                         .padding = {o.padding, o.padding, o.padding},
                         .dilation = {o.dilation, o.dilation, o.dilation},
                         .groups = o.groups});
  }

  friend auto neap_fields(conv3d& self) { return std::tie(self.weight, self.bias, self.options); }
  static constexpr std::array neap_names{"weight", "bias", "options"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

}  // namespace neap::inline v0::nn
