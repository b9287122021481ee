// The bodies of <neap/model/nn/conv_transpose.hpp>.
#pragma once

#include <neap/model/nn/conv_transpose.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC conv_transpose2d::conv_transpose2d(std::int64_t in, std::int64_t out, std::int64_t size,
                                             conv_transpose_options o, std::source_location at)
    : options(o) {
  place_scope const here(at);
  auto const c = neap::detail::of_a_group("conv_transpose2d", out, o.groups, in, out);
  weight = parameter({in, c, size, size}, initialiser::fan_in(c * size * size), o.element);
  if (o.bias) bias = parameter({out}, initialiser::fan_in(c * size * size), o.element);
}

NEAP_FUNC tensor conv_transpose2d::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  auto const& o = options;
  return neap::conv_transpose2d(x, weight, bias,
                                {.stride = {o.stride, o.stride},
                                 .padding = {o.padding, o.padding},
                                 .output_padding = {o.output_padding, o.output_padding},
                                 .dilation = {o.dilation, o.dilation},
                                 .groups = o.groups});
}

NEAP_FUNC conv_transpose1d::conv_transpose1d(std::int64_t in, std::int64_t out, std::int64_t size,
                                             conv_transpose_options o, std::source_location at)
    : options(o) {
  place_scope const here(at);
  auto const c = neap::detail::of_a_group("conv_transpose1d", out, o.groups, in, out);
  weight = parameter({in, c, size}, initialiser::fan_in(c * size), o.element);
  if (o.bias) bias = parameter({out}, initialiser::fan_in(c * size), o.element);
}

NEAP_FUNC tensor conv_transpose1d::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  auto const& o = options;
  return neap::conv_transpose1d(x, weight, bias,
                                {.stride = o.stride,
                                 .padding = o.padding,
                                 .output_padding = o.output_padding,
                                 .dilation = o.dilation,
                                 .groups = o.groups});
}

}}}  // namespace neap::v0::nn
