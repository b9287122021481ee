// Sums, products, means, variances, norms, extremes, any and all over axes, and running sums along one. No axes mean all
// of them. What takes several operators is computed in f32 of bf16 and f16, and rounded once.
#pragma once

#include <neap/ir/operators/reduction.hpp>
#include <neap/model/axis_list.hpp>
#include <neap/model/functions/comparison.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/movement.hpp>

#include <limits>

namespace neap { inline namespace v0 {

tensor sum(tensor const& x, axis_list const& axes = {}, bool keepdim = false,
           std::source_location at = std::source_location::current());
tensor mean(tensor const& x, axis_list const& axes = {}, bool keepdim = false,
            std::source_location at = std::source_location::current());
/// The largest element along axes.
tensor max(tensor const& x, axis_list const& axes = {}, bool keepdim = false,
           std::source_location at = std::source_location::current());
tensor min(tensor const& x, axis_list const& axes = {}, bool keepdim = false,
           std::source_location at = std::source_location::current());

/// Whether any element along axes is true; of none: false. No axes mean all of them.
tensor any(tensor const& x, axis_list const& axes = {}, bool keepdim = false,
           std::source_location at = std::source_location::current());
/// Whether all elements along axes are true; of none: true.
tensor all(tensor const& x, axis_list const& axes = {}, bool keepdim = false,
           std::source_location at = std::source_location::current());

/// The sums along an axis up to each element, that included; from the end back if `reverse`. Floats are added in double;
/// integers and booleans (how many are true so far) give i64.
tensor cumsum(tensor const& x, std::int64_t axis = -1, bool reverse = false,
              std::source_location at = std::source_location::current());

struct variance_form {
  std::int64_t correction = 1;  // what the number of elements is lessened by: 1 for samples, 0 for a whole population
  bool keepdim = false;
};
/// The mean square of what elements differ from their mean by, along axes: var(x, {1}, {.correction = 0}). A NaN where
/// there are no more elements than the correction.
tensor var(tensor const& given, axis_list const& axes = {}, variance_form how = {},
           std::source_location at = std::source_location::current());
namespace detail {
/// Throws neap::error where a tensor lacks one of the axes.
void require_axes(tensor const& x, axis_list const& axes, char const* who, std::source_location at);
}  // namespace detail

/// log(sum(exp(x))) along axes, without overflow; of no elements, or of -inf alone, -inf.
tensor logsumexp(tensor const& given, axis_list const& axes = {}, bool keepdim = false,
                 std::source_location at = std::source_location::current());
/// The p-norm along axes: (sum |x|^p)^(1/p); for p = 0 how many elements are not 0, for an infinite p the largest |x|, for
/// -infinity the smallest. Its gradient at 0 is 0.
tensor norm(tensor const& given, double p = 2, axis_list const& axes = {}, bool keepdim = false,
            std::source_location at = std::source_location::current());
/// The product along axes; of integers and booleans as i64. Halves of an axis are multiplied until one element is left, so
/// the gradient is right where elements are 0, too. O(log extent) ops an axis.
tensor prod(tensor const& given, axis_list const& axes = {}, bool keepdim = false,
            std::source_location at = std::source_location::current());
/// sum(a b) / (|a| |b|) along an axis, for tensors that broadcast to one shape, in which the axis counts; a length below
/// epsilon counts as epsilon.
tensor cosine_similarity(tensor const& given_a, tensor const& given_b, std::int64_t axis = 1, double epsilon = 1e-8,
                         std::source_location at = std::source_location::current());
/// sqrt(var). Where all elements are equal it is 0, and so is its gradient.
tensor stddev(tensor const& given, axis_list const& axes = {}, variance_form how = {},
              std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/reduction.ipp>
#endif
