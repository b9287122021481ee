// Elements by whole numbers (i64): rows of a table, places along an axis, the places of the largest. A number that is
// outside throws neap::error when the step runs.
#pragma once

#include <neap/ir/operators/picking.hpp>
#include <neap/ir/operators/reduction.hpp>
#include <neap/model/axis_list.hpp>
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
/// Parts of x by their numbers along an axis: y[..., i, ...] = x[..., index[i], ...]; index (n).
inline tensor index_select(tensor const& x, tensor const& index, std::int64_t axis = 0,
                           std::source_location at = std::source_location::current()) {
  return apply(op::index_select{axis}, {x, index}, at);
}
/// x with source[..., i, ...] added to its part index[i] along an axis, in the order of i: numbers may repeat.
inline tensor index_add(tensor const& x, tensor const& index, tensor const& source, std::int64_t axis = 0,
                        std::source_location at = std::source_location::current()) {
  return apply(op::index_add{axis}, {x, index, source}, at);
}
/// x with the order along axes turned round; none: along all.
inline tensor flip(tensor const& x, axis_list const& axes = {},
                   std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  std::uint32_t turned = axes.rank() == 0 ? ~0u : 0;
  for (auto axis : axes) {
    auto const bit = 1u << detail::axis_of(x, axis, "flip", at);
    if (turned & bit) throw_error(context_access::place(at), {"flip: axis ", axis, " is given twice in ", axes});
    turned |= bit;
  }
  tensor y = x;
  for (int k = 0; k < x.rank(); ++k) {
    if (!(turned >> k & 1) || x.size(k) < 2) continue;
    std::vector<std::int64_t> places;
    for (auto i = x.size(k); i-- > 0;) places.push_back(i);
    y = index_select(y, detail::make_copy(places, {x.size(k)}, at), k);
  }
  return y;
}
/// x with its elements moved on by a number of places along axes, those that leave at the end come in at the front: one
/// number an axis. No axes: along all of them as if they were one, by one number.
inline tensor roll(tensor const& x, axis_list const& shifts, axis_list const& axes = {},
                   std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  if (axes.rank() == 0 && shifts.rank() == 1) return reshape(roll(reshape(x, {-1}), shifts, {0}), x.shape());
  if (shifts.rank() != axes.rank())
    throw_error(context_access::place(at), {"roll: takes as many shifts as axes, was given ", shifts, " for ", axes});
  tensor y = x;
  for (int i = 0; i < axes.rank(); ++i) {
    int const k = detail::axis_of(x, axes[i], "roll", at);
    auto const n = x.size(k);
    auto const by = n > 0 ? (shifts[i] % n + n) % n : 0;
    if (by != 0) y = concat({slice(y, k, n - by, n), slice(y, k, 0, n - by)}, k);
  }
  return y;
}
/// ids (...) -> (..., classes): 1 at each id's place, else 0.
inline tensor one_hot(tensor const& ids, std::int64_t classes, dtype element = dtype::f32,
                      std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return apply(op::one_hot{classes, element}, {contiguous(ids)});
}

/// Elements in order along an axis, and the places that they have in what was ordered.
struct ordered {
  tensor values, places;
};
/// The k largest elements along an axis, the largest first; of equals the one at the lower place, and a NaN is larger
/// than all. Options: {.axis = 0, .largest = false}. The gradient goes to the elements that were taken.
inline ordered topk(tensor const& x, std::int64_t k, op::topk how = {},
                    std::source_location at = std::source_location::current()) {
  how.k = k;
  auto out = apply_all(how, {x}, at);
  return {std::move(out[0]), std::move(out[1])};
}
/// All elements along an axis from the smallest to the largest, or the other way round; equal ones keep their order.
inline ordered sort(tensor const& x, std::int64_t axis = -1, bool descending = false,
                    std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return topk(x, x.size(detail::axis_of(x, axis, "sort", at)), {.axis = axis, .largest = descending});
}
/// The places of sort.
inline tensor arg_sort(tensor const& x, std::int64_t axis = -1, bool descending = false,
                       std::source_location at = std::source_location::current()) {
  return sort(x, axis, descending, at).places;
}

}  // namespace neap::inline v0
