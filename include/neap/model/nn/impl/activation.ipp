// The bodies of <neap/model/nn/activation.hpp>.
#pragma once

#include <neap/model/nn/activation.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC tensor relu::operator()(tensor const& x, std::source_location at) const {
  scope const within(*this);
  return neap::relu(x, at);
}

NEAP_FUNC tensor gelu::operator()(tensor const& x, std::source_location at) const {
  scope const within(*this);
  return neap::gelu(x, at);
}

NEAP_FUNC tensor elu::operator()(tensor const& x, std::source_location at) const {
  scope const within(*this);
  return neap::elu(x, alpha, at);
}

NEAP_FUNC tensor silu::operator()(tensor const& x, std::source_location at) const {
  scope const within(*this);
  return neap::silu(x, at);
}

NEAP_FUNC tensor tanh::operator()(tensor const& x, std::source_location at) const {
  scope const within(*this);
  return neap::tanh(x, at);
}

NEAP_FUNC tensor sigmoid::operator()(tensor const& x, std::source_location at) const {
  scope const within(*this);
  return neap::sigmoid(x, at);
}

NEAP_FUNC tensor dropout::operator()(tensor const& x, std::source_location at) const {
  scope const within(*this);
  return neap::dropout(x, p, at);
}

NEAP_FUNC tensor flatten::operator()(tensor const& x, std::source_location at) const {
  scope const within(*this);
  return neap::flatten(x, 1, at);
}

NEAP_FUNC tensor max_pool2d::operator()(tensor const& x, std::source_location at) const {
  scope const within(*this);
  return neap::max_pool2d(x, {.window = {size, size}, .stride = {stride, stride}, .padding = {padding, padding}}, at);
}

NEAP_FUNC tensor avg_pool2d::operator()(tensor const& x, std::source_location at) const {
  scope const within(*this);
  return neap::avg_pool2d(x, {.window = {size, size}, .stride = {stride, stride}, .padding = {padding, padding}}, at);
}

}}}  // namespace neap::v0::nn
