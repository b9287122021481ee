// Matrix products and linear maps.
#pragma once

#include <neap/ir/operators/matmul.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap { inline namespace v0 {

namespace detail {
/// x itself if the last two axes are a matrix that a kernel can read, else a copy.
tensor matrix(tensor const& x);
}  // namespace detail

/// a (..., m, k) b (..., k, n) -> (..., m, n); axes in front broadcast. The operator's attributes are the options:
/// matmul(a, b, {.transpose_b = true}).
tensor matmul(tensor const& a, tensor const& b, op::matmul how = {},
              std::source_location at = std::source_location::current());
/// x (..., in), weight (out, in), bias (out) or empty -> (..., out)
tensor linear(tensor const& x, tensor const& weight, tensor const& bias,
              std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/matrix.ipp>
#endif
