// Matrix products and linear maps.
#pragma once

#include <neap/ir/operators/matmul.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap::inline v0 {

namespace detail {
/// x itself if the last two axes are a matrix that a kernel can read, else a copy.
template <class Backend>
tensor matrix(tensor const& x, std::source_location at) {
  return x.rank(at) < 2 || op::detail::is_matrix(x.layout(at)) ? x : apply<Backend>(op::copy{}, {x}, at);
}
}  // namespace detail

/// a (..., m, k) b (..., k, n) -> (..., m, n); axes in front broadcast. The operator's attributes are the options:
/// matmul(a, b, {.transpose_b = true}).
template <class Backend = host_backend>
tensor matmul(tensor const& a, tensor const& b, op::matmul how = {},
              std::source_location at = std::source_location::current()) {
  return apply<Backend>(how, {detail::matrix<Backend>(a, at), detail::matrix<Backend>(b, at)}, at);
}
/// x (..., in), weight (out, in), bias (out) or empty -> (..., out)
template <class Backend = host_backend>
tensor linear(tensor const& x, tensor const& weight, tensor const& bias,
              std::source_location at = std::source_location::current()) {
  tensor const y = matmul<Backend>(x, weight, {.transpose_b = true}, at);
  return bias.is_empty() ? y : add<Backend>(y, bias, at);
}

}  // namespace neap::inline v0
