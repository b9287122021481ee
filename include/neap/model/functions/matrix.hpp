// Matrix products and linear maps.
#pragma once

#include <neap/ir/operators/matmul.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap::inline v0 {

namespace detail {
/// x itself if the last two axes are a matrix that a kernel can read, else a copy.
tensor matrix(tensor const& x);
}  // namespace detail

/// a (..., m, k) b (..., k, n) -> (..., m, n); axes in front broadcast. The operator's attributes are the options:
/// matmul(a, b, {.transpose_b = true}).
inline tensor matmul(tensor const& a, tensor const& b, op::matmul how = {},
                     std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(how, {detail::matrix(a), detail::matrix(b)});
}
/// x (..., in), weight (out, in), bias (out) or empty -> (..., out)
inline tensor linear(tensor const& x, tensor const& weight, tensor const& bias,
                     std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  if (x.rank() == 1) return squeeze(linear(unsqueeze(x, 0), weight, bias), 0);
  tensor const y = matmul(x, weight, {.transpose_b = true});
  if (!bias.is_empty()) detail::require_broadcast(y, bias, "linear: result and bias", at);
  return bias.is_empty() ? y : y + bias;
}

}  // namespace neap::inline v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/matrix.ipp>
#endif
