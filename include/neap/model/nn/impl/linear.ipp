// The bodies of <neap/model/nn/linear.hpp>.
#pragma once

#include <neap/model/nn/linear.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC linear::linear(std::int64_t in, std::int64_t out, linear_options o, std::source_location at) {
  place_scope const here(at);
  weight = parameter({out, in}, initialiser::fan_in(in), o.element);
  if (o.bias) bias = parameter({out}, initialiser::fan_in(in), o.element);
}

NEAP_FUNC tensor linear::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  return neap::linear(x, weight, bias);
}

}}}  // namespace neap::v0::nn

namespace neap { inline namespace v0 { namespace nn { namespace detail {

NEAP_FUNC void require_width(char const* who, tensor const& x, parameter const& weight) {
  if (weight.is_empty())
    throw_error(context_access::place({}), {who, ": this module was never made: it has no widths"});
  if (x.size(-1) != weight.size(-1))
    throw_error(context_access::place({}), {who, ": takes inputs of width ", weight.size(-1), ", got ", x.type()});
}

}  // namespace detail
}}}  // namespace neap::v0::nn
