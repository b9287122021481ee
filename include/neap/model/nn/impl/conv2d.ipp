// The bodies of <neap/model/nn/conv2d.hpp>.
#pragma once

#include <neap/model/nn/conv2d.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::int64_t of_a_group(char const* who, std::int64_t channels, std::int64_t groups, std::int64_t in,
                                  std::int64_t out) {
  if (groups < 1 || in % groups != 0 || out % groups != 0)
    throw_error(context_access::place({}),
                {who, ": ", in, " and ", out, " channels do not divide into ", groups, " groups"});
  return channels / groups;
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC conv2d::conv2d(std::int64_t in, std::int64_t out, std::int64_t size, conv2d_options o,
                         std::source_location at)
    : options(o) {
  place_scope const here(at);
  auto const c = neap::detail::of_a_group("conv2d", in, o.groups, in, out);
  weight = parameter({out, c, size, size}, initialiser::fan_in(c * size * size), o.element);
  if (o.bias) bias = parameter({out}, initialiser::fan_in(c * size * size), o.element);
}

NEAP_FUNC tensor conv2d::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  auto const& o = options;
  return neap::conv2d(x, weight, bias,
                      {.stride = {o.stride, o.stride},
                       .padding = {o.padding, o.padding},
                       .dilation = {o.dilation, o.dilation},
                       .groups = o.groups});
}

}  // namespace nn
}}  // namespace neap::v0
