// Elements by whole numbers: rows of a table, places along an axis, the place of the largest.
#pragma once

#include <neap/ir/operators/picking.hpp>
#include <neap/ir/operators/reduction.hpp>
#include <neap/model/functions/rows.hpp>

namespace neap::inline v0 {

/// table (rows, d), ids (...) of i64 -> (..., d)
inline tensor embedding(tensor const& table, tensor const& ids,
                        std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(op::embedding{}, {detail::rows(table), contiguous(ids)});
}
/// y[..., k, ...] = x[..., index[..., k, ...], ...] along an axis; index of i64, of y's shape.
inline tensor gather(tensor const& x, tensor const& index, std::int64_t axis = 0,
                     std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(op::gather{axis}, {x, contiguous(index)});
}
/// The first place of the largest element along an axis, which is then gone: i64.
inline tensor arg_max(tensor const& x, std::int64_t axis = -1,
                      std::source_location at = std::source_location::current()) {
  return apply(op::arg_max{axis}, {x}, at);
}

}  // namespace neap::inline v0
