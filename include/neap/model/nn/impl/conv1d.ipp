// The bodies of <neap/model/nn/conv1d.hpp>.
#pragma once

#include <neap/model/nn/conv1d.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC conv1d::conv1d(std::int64_t in, std::int64_t out, std::int64_t size, conv1d_options o,
                         std::source_location at)
    : options(o) {
  place_scope const here(at);
  auto const c = neap::detail::of_a_group("conv1d", in, o.groups, in, out);
  weight = parameter({out, c, size}, initialiser::fan_in(c * size), o.element);
  if (o.bias) bias = parameter({out}, initialiser::fan_in(c * size), o.element);
}

NEAP_FUNC tensor conv1d::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  auto const& o = options;
  return neap::conv1d(x, weight, bias,
                      {.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups});
}

}}}  // namespace neap::v0::nn
