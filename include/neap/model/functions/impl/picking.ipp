// The bodies of <neap/model/functions/picking.hpp>.
#pragma once

#include <neap/model/functions/picking.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/model/functions/comparison.hpp>
#include <neap/model/functions/elementwise.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC tensor embedding(tensor const& table, tensor const& ids, std::source_location at) {
  place_scope const here(at, "embedding");
  return apply(op::embedding{}, {detail::rows(table), contiguous(ids)});
}

NEAP_FUNC tensor gather(tensor const& x, tensor const& index, std::int64_t axis, std::source_location at) {
  place_scope const here(at, "gather");
  return apply(op::gather{axis}, {x, contiguous(index)});
}

NEAP_FUNC tensor arg_max(tensor const& x, std::int64_t axis, std::source_location at) {
  return apply(op::arg_max{axis}, {x}, at);
}

NEAP_FUNC tensor arg_min(tensor const& x, std::int64_t axis, std::source_location at) {
  place_scope const here(at, "arg_min");
  if (x.is_empty() || is_floating(x.element()) || x.element() == dtype::boolean)
    return arg_max(x.is_empty() || x.element() != dtype::boolean ? neg(x) : logical_not(x), axis);
  return arg_max(-1 - cast(x, dtype::i64), axis);  // in the other order; -x of the least number is itself
}

NEAP_FUNC tensor scatter(tensor const& x, tensor const& index, tensor const& source, std::int64_t axis,
                         std::source_location at) {
  place_scope const here(at, "scatter");
  auto const k = detail::axis_of(x, axis, "scatter", at);
  if (index.shape() != source.shape() || x.element() != source.element())
    throw_error(context_access::place(at), {"scatter: index ", index.type(), " and source ", source.type(),
                                            " must have one shape, and the source the element type of ", x.type()});
  for (int i = 0; i < x.rank(); ++i)
    if (index.rank() != x.rank() || (i != k && index.size(i) != x.size(i)))
      throw_error(context_access::place(at),
                  {"scatter: index ", index.type(), " and ", x.type(), " must agree in all axes but ", k});
  op::scatter_add send;
  send.axis = k, send.extent = x.size(k);
  tensor const dense = contiguous(index);
  tensor const counts = apply(send, {fill(source.shape(), 1, dtype::f32), dense});
  return where(greater(counts, 0), apply(send, {contiguous(source), dense}), x);
}

NEAP_FUNC tensor index_select(tensor const& x, tensor const& index, std::int64_t axis, std::source_location at) {
  return apply(op::index_select{axis}, {x, index}, at);
}

NEAP_FUNC tensor index_add(tensor const& x, tensor const& index, tensor const& source, std::int64_t axis,
                           std::source_location at) {
  return apply(op::index_add{axis}, {x, index, source}, at);
}

NEAP_FUNC tensor flip(tensor const& x, axis_list const& axes, std::source_location at) {
  place_scope const here(at, "flip");
  std::uint32_t turned = axes.rank() == 0 ? ~0u : 0;
  for (auto axis : axes) {
    auto const bit = 1u << detail::axis_of(x, axis, "flip", at);
    if (turned & bit) throw_error(context_access::place(at), {"flip: axis ", axis, " is named twice in ", axes});
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

NEAP_FUNC tensor roll(tensor const& x, axis_list const& shifts, axis_list const& axes, std::source_location at) {
  place_scope const here(at, "roll");
  if (axes.rank() == 0 && shifts.rank() == 1) return reshape(roll(reshape(x, {-1}), shifts, {0}), x.shape());
  if (shifts.rank() != axes.rank())
    throw_error(context_access::place(at), {"roll: takes as many shifts as axes, got ", shifts, " for ", axes});
  tensor y = x;
  for (int i = 0; i < axes.rank(); ++i) {
    int const k = detail::axis_of(x, axes[i], "roll", at);
    auto const n = x.size(k);
    auto const by = n > 0 ? (shifts[i] % n + n) % n : 0;
    if (by != 0) y = concat({slice(y, k, n - by, n), slice(y, k, 0, n - by)}, k);
  }
  return y;
}

NEAP_FUNC tensor one_hot(tensor const& ids, std::int64_t classes, dtype element, std::source_location at) {
  place_scope const here(at, "one_hot");
  return apply(op::one_hot{classes, element}, {contiguous(ids)});
}

NEAP_FUNC ordered topk(tensor const& x, std::int64_t k, op::topk how, std::source_location at) {
  how.k = k;
  auto out = apply_all(how, {x}, at);
  return {std::move(out[0]), std::move(out[1])};
}

NEAP_FUNC ordered sort(tensor const& x, std::int64_t axis, bool descending, std::source_location at) {
  place_scope const here(at, "sort");
  return topk(x, x.size(detail::axis_of(x, axis, "sort", at)), {.axis = axis, .largest = descending});
}

NEAP_FUNC tensor arg_sort(tensor const& x, std::int64_t axis, bool descending, std::source_location at) {
  place_scope const here(at, "arg_sort");
  return topk(x, x.size(detail::axis_of(x, axis, "arg_sort", at)), {.axis = axis, .largest = descending}).places;
}

}}  // namespace neap::v0
