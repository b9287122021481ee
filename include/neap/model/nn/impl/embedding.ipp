// The bodies of <neap/model/nn/embedding.hpp>.
#pragma once

#include <neap/model/nn/embedding.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC embedding::embedding(std::int64_t rows, std::int64_t width, double deviation, dtype element,
                               std::source_location at) {
  place_scope const here(at);
  weight = parameter({rows, width}, initialiser::normal(0, deviation), element);
}

NEAP_FUNC tensor embedding::operator()(tensor const& ids, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  return neap::embedding(weight, ids);
}

}}}  // namespace neap::v0::nn
