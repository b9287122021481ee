// The bodies of <neap/model/functions/matrix.hpp>.
#pragma once

#include <neap/model/functions/matrix.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor matrix(tensor const& x) {
  return x.rank() < 2 || op::detail::is_matrix(x.layout()) ? x : apply(op::copy{}, {x});
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor matmul(tensor const& a, tensor const& b, op::matmul how, std::source_location at) {
  place_scope const here(at, "matmul");
  return apply(how, {detail::matrix(a), detail::matrix(b)});
}

NEAP_FUNC tensor linear(tensor const& x, tensor const& weight, tensor const& bias, std::source_location at) {
  place_scope const here(at, "linear");
  if (x.rank() == 1) return squeeze(linear(unsqueeze(x, 0), weight, bias), 0);
  tensor const y = matmul(x, weight, {.transpose_b = true});
  if (!bias.is_empty()) detail::require_broadcast(y, bias, "linear: result and bias", at);
  return bias.is_empty() ? y : y + bias;
}

}}  // namespace neap::v0
