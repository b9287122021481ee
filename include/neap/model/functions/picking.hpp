// Elements by whole numbers (i64): rows of a table, places along an axis, the places of the largest. A number that is
// outside throws neap::error when the step runs.
#pragma once

#include <neap/ir/operators/picking.hpp>
#include <neap/ir/operators/reduction.hpp>
#include <neap/model/axis_list.hpp>
#include <neap/model/functions/rows.hpp>

namespace neap { inline namespace v0 {

/// table (rows, d), ids (...) of i64 -> (..., d)
tensor embedding(tensor const& table, tensor const& ids, std::source_location at = std::source_location::current());
/// y[..., k, ...] = x[..., index[..., k, ...], ...] along an axis; index of i64, of y's shape.
tensor gather(tensor const& x, tensor const& index, std::int64_t axis = 0,
              std::source_location at = std::source_location::current());
/// The first place of the largest element along an axis, which is then gone: i64.
tensor arg_max(tensor const& x, std::int64_t axis = -1, std::source_location at = std::source_location::current());
/// Likewise of the smallest element.
tensor arg_min(tensor const& x, std::int64_t axis = -1, std::source_location at = std::source_location::current());
/// x with y[..., index[..., k, ...], ...] = source[..., k, ...] along an axis; index (i64) and source have one shape, which is
/// x's but for that axis. Places that come twice get the sum of what is sent there.
tensor scatter(tensor const& x, tensor const& index, tensor const& source, std::int64_t axis = 0,
               std::source_location at = std::source_location::current());
/// Parts of x by their numbers along an axis: y[..., i, ...] = x[..., index[i], ...]; index (n).
tensor index_select(tensor const& x, tensor const& index, std::int64_t axis = 0,
                    std::source_location at = std::source_location::current());
/// x with source[..., i, ...] added to its part index[i] along an axis, in the order of i: numbers may repeat.
tensor index_add(tensor const& x, tensor const& index, tensor const& source, std::int64_t axis = 0,
                 std::source_location at = std::source_location::current());
/// x with the order along axes turned round; none: along all.
tensor flip(tensor const& x, axis_list const& axes = {}, std::source_location at = std::source_location::current());
/// x with its elements moved on by a number of places along axes, those that leave at the end come in at the front: one
/// number an axis. No axes: along all of them as if they were one, by one number.
tensor roll(tensor const& x, axis_list const& shifts, axis_list const& axes = {},
            std::source_location at = std::source_location::current());
/// ids (...) -> (..., classes): 1 at each id's place, else 0.
tensor one_hot(tensor const& ids, std::int64_t classes, dtype element = dtype::f32,
               std::source_location at = std::source_location::current());

/// Elements in order along an axis, and the places that they have in what was ordered.
struct ordered {
  tensor values, places;
};
/// The k largest elements along an axis, the largest first; of equals the one at the lower place, and a NaN is larger
/// than all. Options: {.axis = 0, .largest = false}. The gradient goes to the elements that were taken.
ordered topk(tensor const& x, std::int64_t k, op::topk how = {},
             std::source_location at = std::source_location::current());
/// All elements along an axis from the smallest to the largest, or the other way round; equal ones keep their order.
ordered sort(tensor const& x, std::int64_t axis = -1, bool descending = false,
             std::source_location at = std::source_location::current());
/// The places of sort.
tensor arg_sort(tensor const& x, std::int64_t axis = -1, bool descending = false,
                std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/picking.ipp>
#endif
