// The bodies of <neap/model/nn/norm.hpp>.
#pragma once

#include <neap/model/nn/norm.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC layer_norm::layer_norm(std::int64_t width, double eps, dtype element, std::source_location at)
    : epsilon(eps) {
  place_scope const here(at);
  weight = parameter({width}, initialiser::constant(1), element);
  bias = parameter({width}, initialiser::constant(0), element);
}

}}}  // namespace neap::v0::nn

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC tensor layer_norm::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  return neap::layer_norm(x, weight, bias, epsilon);
}

NEAP_FUNC rms_norm::rms_norm(std::int64_t width, double eps, dtype element, std::source_location at) : epsilon(eps) {
  place_scope const here(at);
  weight = parameter({width}, initialiser::constant(1), element);
}

NEAP_FUNC tensor rms_norm::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  return neap::rms_norm(x, weight, epsilon);
}

NEAP_FUNC group_norm::group_norm(std::int64_t groups_, std::int64_t channels, double eps, dtype element,
                                 std::source_location at)
    : groups(groups_),
      epsilon(eps) {
  place_scope const here(at);
  weight = parameter({channels}, initialiser::constant(1), element);
  bias = parameter({channels}, initialiser::constant(0), element);
}

NEAP_FUNC tensor group_norm::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  return neap::group_norm(x, weight, bias, groups, epsilon);
}

NEAP_FUNC batch_norm2d::batch_norm2d(std::int64_t channels, double eps, double momentum_, dtype element,
                                     std::source_location at)
    : epsilon(eps),
      momentum(momentum_) {
  place_scope const here(at);
  weight = parameter({channels}, initialiser::constant(1), element);
  bias = parameter({channels}, initialiser::constant(0), element);
  running_mean = buffer({channels}, initialiser::constant(0), element);
  running_variance = buffer({channels}, initialiser::constant(1), element);
}

NEAP_FUNC tensor batch_norm2d::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  return neap::batch_norm(x, weight, bias, running_mean, running_variance,
                          {.epsilon = epsilon, .momentum = momentum, .fixed_statistics = fixed_statistics});
}

NEAP_FUNC tensor batch_norm1d::operator()(tensor const& x, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  if (x.rank() != 2 && x.rank() != 3)
    throw_error(context_access::place(at),
                {"batch_norm1d: takes (batch, channels) or (batch, channels, length), got ", x.type()});
  return batch_norm2d::operator()(x);
}

}}}  // namespace neap::v0::nn
