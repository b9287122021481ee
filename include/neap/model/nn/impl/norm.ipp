// The bodies of <neap/model/nn/norm.hpp>.
#pragma once

#include <neap/model/nn/norm.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0::nn {

NEAP_FUNC layer_norm::layer_norm(std::int64_t width, double eps, dtype element, std::source_location at)
    : epsilon(eps) {
  place_scope const here(at);
  weight = parameter({width}, initialiser::constant(1), element);
  bias = parameter({width}, initialiser::constant(0), element);
}

}  // namespace neap::inline v0::nn
