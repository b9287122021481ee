// Functions that move elements: views share the data of what they look at and cost nothing; the others copy.
#pragma once

#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/split.hpp>
#include <neap/ir/operators/update.hpp>
#include <neap/model/apply.hpp>

#include <cmath>
#include <vector>

namespace neap::inline v0 {

/// x itself if its elements follow one another in row-major order, else a copy whose elements do.
tensor contiguous(tensor const& x, std::source_location at = std::source_location::current());
/// x in another element type; x itself if it has it already.
inline tensor cast(tensor const& x, dtype to, std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return x.element() == to ? x : apply(op::cast{to}, {x});
}
/// A tensor of its own with the elements of x, dense; gradients go through it. What writes x in place later leaves it
/// alone.
inline tensor copy(tensor const& x, std::source_location at = std::source_location::current()) {
  return apply(op::copy{}, {x}, at);
}
namespace detail {
/// Whether two tensors look at one memory.
inline bool share_memory(tensor const& a, tensor const& b, std::source_location at) {
  if (auto* t = tracer::active()) {
    auto const x = t->value(a, at), y = t->value(b, at);
    return t->editor().graph().storage(x) == t->editor().graph().storage(y);
  }
  return a.storage() && a.storage() == b.storage();
}
}  // namespace detail
/// Writes x into the memory of `to`, a tensor of the same type: how a model carries numbers to its next step, in a
/// neap::buffer. Reads of `to`, and of views of it, are of x from here on, and no gradient goes through them; gradients
/// of what was read before are of what was there then. x may be another view of `to`.
inline void assign(tensor const& to, tensor const& x, std::source_location at = std::source_location::current()) {
  bool const same = !to.is_empty() && !x.is_empty() && detail::share_memory(to, x, at);
  (void)apply(op::assign{}, {to, same ? copy(x, at) : x}, at);
}

/// Other extents, of as many elements; one extent may be -1: whatever is left. A view where x is dense.
inline tensor reshape(tensor const& x, shape dims, std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  std::int64_t rest = 1;
  int open = -1;
  for (int i = 0; i < dims.rank(); ++i) {
    if (dims[i] >= 0) {
      detail::with_place(at, [&] { rest = checked_mul(rest, dims[i]); });
    } else {
      if (open >= 0 || dims[i] != -1)
        throw_error(context_access::place(at), {"reshape: one extent may be -1, was given ", dims});
      open = i;
    }
  }
  if (open >= 0) {
    if (rest == 0 || x.count() % rest != 0)
      throw_error(context_access::place(at),
                  {"reshape: from ", x.shape(), " to ", dims, ": element counts do not divide"});
    dims[open] = x.count() / rest;
  }
  if (dims == x.shape()) return x;
  return apply(op::reshape{dims}, {contiguous(x)});
}
/// Axes from `first` on as one.
inline tensor flatten(tensor const& x, std::int64_t first = 0,
                      std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  int const from = detail::axis_of(x, first, "flatten", at);
  shape dims;
  std::int64_t rest = 1;
  for (int i = 0; i < x.rank(); ++i)
    if (i < from) dims.push_back(x.size(i));
    else rest *= x.size(i);
  dims.push_back(rest);
  return reshape(x, dims);
}
/// A view whose axis k is x's axis axes[k].
inline tensor permute(tensor const& x, extents axes, std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  for (int i = 0; i < axes.rank(); ++i) axes[i] = detail::axis_of(x, axes[i], "permute", at);
  return apply(op::permute{axes}, {x});
}
/// A view with two axes exchanged.
inline tensor transpose(tensor const& x, std::int64_t a = -2, std::int64_t b = -1,
                        std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  int const i = detail::axis_of(x, a, "transpose", at), j = detail::axis_of(x, b, "transpose", at);
  extents axes;
  for (int k = 0; k < x.rank(); ++k) axes.push_back(k == i ? j : k == j ? i : k);
  return apply(op::permute{axes}, {x});
}
/// A view of the part [start, stop) of an axis; negative numbers count from its end.
tensor slice(tensor const& x, std::int64_t axis, std::int64_t start, std::int64_t stop,
             std::source_location at = std::source_location::current());
/// A view of one place of an axis, which is then gone.
inline tensor select(tensor const& x, std::int64_t axis, std::int64_t i,
                     std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  int const k = detail::axis_of(x, axis, "select", at);
  if (i < -x.size(k) || i >= x.size(k))
    throw_error(context_access::place(at), {"select: no place ", i, " on axis ", axis, " of ", x.type()});
  if (i < 0) i += x.size(k);
  shape dims = x.shape();
  dims.erase(k);
  return reshape(apply(op::slice{k, i, i + 1}, {x}), dims);
}
namespace detail {
inline tensor first_place(tensor const& x, std::int64_t i, std::source_location at) {
  if (x.rank(at) == 0)
    throw_error(context_access::place(at), {"x[", i, "]: the tensor has no axis to pick from, ", x.type()});
  if (i < -x.size(0) || i >= x.size(0))
    throw_error(context_access::place(at), {"x[", i, "]: there is no such place in ", x.type()});
  return select(x, 0, i, at);
}
}  // namespace detail
/// Views of equal parts of an axis, one after another. Throws neap::error if it does not divide.
inline std::vector<tensor> split(tensor const& x, std::int64_t parts, std::int64_t axis = 0,
                                 std::source_location at = std::source_location::current()) {
  return apply_all(op::split{axis, parts}, {x}, at);
}
/// Views with an axis of extent 1 more, or less.
inline tensor unsqueeze(tensor const& x, std::int64_t axis, std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  shape dims = x.shape();
  auto const place = axis < 0 ? axis + dims.rank() + 1 : axis;
  if (place < 0 || place > dims.rank())
    throw_error(context_access::place(at), {"unsqueeze: no place ", axis, " in ", x.type()});
  detail::with_place(at, [&] { dims.insert(static_cast<int>(place), 1); });
  return reshape(x, dims);
}
inline tensor squeeze(tensor const& x, std::int64_t axis, std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  shape dims = x.shape();
  int const k = detail::axis_of(x, axis, "squeeze", at);
  if (dims[k] != 1)
    throw_error(context_access::place(at), {"squeeze: the extent of axis ", axis, " of ", x.type(), " is not 1"});
  dims.erase(k);
  return reshape(x, dims);
}
/// A view in a larger shape: missing leading axes and axes of extent 1 repeat.
inline tensor broadcast_to(tensor const& x, shape const& dims,
                           std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  return dims == x.shape() ? x : apply(op::broadcast_to{dims}, {x});
}
/// One after another along an axis.
inline tensor concat(std::vector<tensor> const& parts, std::int64_t axis = 0,
                     std::source_location at = std::source_location::current()) {
  return apply_all(op::concat{axis}, std::span<tensor const>(parts), at).front();
}
/// One beside another along a new axis: parts of one shape; the axis counts in the result.
inline tensor stack(std::vector<tensor> const& parts, std::int64_t axis = 0,
                    std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  if (parts.empty()) throw_error(context_access::place(at), {"stack: needs at least one tensor"});
  tensor const& first = parts[0];
  int const rank = first.rank(), k = static_cast<int>(axis < 0 ? axis + rank + 1 : axis);
  if (k < 0 || k > rank)
    throw_error(context_access::place(at), {"stack: no place ", axis, " for a new axis in ", first.type()});
  for (auto const& part : parts)
    if (part.shape() != first.shape())
      throw_error(context_access::place(at), {"stack: shapes differ, ", first.shape(), " and ", part.shape()});
  shape dims = first.shape();
  detail::with_place(at, [&] { dims.insert(k, static_cast<std::int64_t>(parts.size())); });
  if (k < rank) return reshape(concat(parts, k), dims);  // without a copy of parts that are views
  std::vector<tensor> columns;
  for (auto const& part : parts) columns.push_back(unsqueeze(part, -1));
  return concat(columns, -1);
}
/// `before` and `after` elements of `value` around an axis.
inline tensor pad(tensor const& x, std::int64_t axis, std::int64_t before, std::int64_t after, double value = 0,
                  std::source_location at = std::source_location::current()) {
  return apply(op::pad{axis, before, after, value}, {x}, at);
}
/// x with zeros above a diagonal of the last two axes; diagonal d holds the elements (i, i + d). A NaN above it is
/// gone.
inline tensor tril(tensor const& x, std::int64_t diagonal = 0,
                   std::source_location at = std::source_location::current()) {
  return apply(op::triangle{diagonal, false}, {x}, at);
}
/// x with zeros below a diagonal.
inline tensor triu(tensor const& x, std::int64_t diagonal = 0,
                   std::source_location at = std::source_location::current()) {
  return apply(op::triangle{diagonal, true}, {x}, at);
}
/// start, start + step, ... up to but without stop, as a tensor that is the same in every step.
inline tensor arange(double start, double stop, double step = 1, dtype element = dtype::i64,
                     std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  auto const refuse = [&](auto const& why) {
    throw_error(context_access::place(at), {"arange: ", why, ", was given ", start, ", ", stop, ", ", step});
  };
  double const count = std::ceil((stop - start) / step);
  if (!(count >= 0 && count < 0x1p53)) refuse("the step must lead from start to stop");
  bool const whole = start == std::floor(start) && step == std::floor(step);
  if (!is_floating(element) && !whole) refuse("whole numbers need a whole start and step: give a floating type");
  std::vector<double> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = start + step * static_cast<double>(i);
  tensor numbers = detail::make_copy(all, {static_cast<std::int64_t>(all.size())}, at);
  if (element == dtype::f64) return numbers;
  if (!context_access::trace()) return apply(op::cast{element}, {numbers});
  return with_type(element, [&](auto tag) {  // one constant of the trace
    using T = typename decltype(tag)::type;
    std::vector<T> converted;
    for (auto x : all) converted.push_back(detail::convert<T>(x));
    return detail::make_copy(converted, {static_cast<std::int64_t>(all.size())}, at);
  });
}
inline tensor arange(std::int64_t stop, dtype element = dtype::i64,
                     std::source_location at = std::source_location::current()) {
  return arange(0, static_cast<double>(stop), 1, element, at);
}
/// rows x columns (no columns: as many as rows) with 1 on the diagonal, else 0.
inline tensor eye(std::int64_t rows, std::int64_t columns = -1, dtype element = dtype::f32,
                  std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  if (rows < 0 || columns < -1)
    throw_error(context_access::place(at), {"eye: numbers of rows and columns, was given ", rows, " and ", columns});
  tensor const ones = apply(op::fill{{rows, columns < 0 ? rows : columns}, element, 1}, {});
  return triu(tril(ones));
}
/// A tensor of one value, made anew: in a trace, by an op.
inline tensor fill(shape const& dims, double value, dtype element = dtype::f32,
                   std::source_location at = std::source_location::current()) {
  return apply(op::fill{dims, element, value}, {}, at);
}

}  // namespace neap::inline v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/movement.ipp>
#endif
