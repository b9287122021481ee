// The bodies of <neap/model/nn/conv3d.hpp>.
#pragma once

#include <neap/model/nn/conv3d.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC conv3d::conv3d(std::int64_t in, std::int64_t out, std::int64_t size, conv2d_options o,
                         std::source_location at)
    : options(o) {
  place_scope const here(at);
  auto const c = neap::detail::of_a_group("conv3d", in, o.groups, in, out), fan = c * size * size * size;
  weight = parameter({out, c, size, size, size}, initialiser::fan_in(fan), o.element);
  if (o.bias) bias = parameter({out}, initialiser::fan_in(fan), o.element);
}

NEAP_FUNC tensor conv3d::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  auto const& o = options;
  return neap::conv3d(x, weight, bias,
                      {.stride = {o.stride, o.stride, o.stride},
                       .padding = {o.padding, o.padding, o.padding},
                       .dilation = {o.dilation, o.dilation, o.dilation},
                       .groups = o.groups});
}

}}}  // namespace neap::v0::nn
