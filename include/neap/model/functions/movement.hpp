// Functions that move elements: views share the data of what they look at and cost nothing; the others copy.
#pragma once

#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/split.hpp>
#include <neap/model/apply.hpp>

#include <vector>

namespace neap::inline v0 {

/// x itself if its elements follow one another in row-major order, else a copy whose elements do.
template <class Backend = host_backend>
tensor contiguous(tensor const& x, std::source_location at = std::source_location::current()) {
  return x.layout(at).is_dense() ? x : apply<Backend>(op::copy{}, {x}, at);
}
/// x in another element type; x itself if it has it already.
template <class Backend = host_backend>
tensor cast(tensor const& x, dtype to, std::source_location at = std::source_location::current()) {
  return x.element(at) == to ? x : apply<Backend>(op::cast{to}, {x}, at);
}

/// Other extents, of as many elements; one extent may be -1: whatever is left. A view where x is dense.
template <class Backend = host_backend>
tensor reshape(tensor const& x, shape dims, std::source_location at = std::source_location::current()) {
  std::int64_t rest = 1;
  int open = -1;
  for (int i = 0; i < dims.rank(); ++i) {
    if (dims[i] >= 0) {
      detail::with_place(at, [&] { rest = checked_mul(rest, dims[i]); });
    } else {
      if (open >= 0 || dims[i] != -1)
        throw error(context_access::place(at), "reshape: one extent may be -1, was given " + to_string(dims));
      open = i;
    }
  }
  if (open >= 0) {
    if (rest == 0 || x.count(at) % rest != 0)
      throw error(context_access::place(at), "reshape: from " + to_string(x.shape(at)) + " to " + to_string(dims) +
                                                 ": element counts do not divide");
    dims[open] = x.count(at) / rest;
  }
  if (dims == x.shape(at)) return x;
  return apply<Backend>(op::reshape{dims}, {contiguous<Backend>(x, at)}, at);
}
/// Axes from `first` on as one.
template <class Backend = host_backend>
tensor flatten(tensor const& x, std::int64_t first = 0, std::source_location at = std::source_location::current()) {
  int const from = detail::axis_of(x, first, "flatten", at);
  shape dims;
  std::int64_t rest = 1;
  for (int i = 0; i < x.rank(at); ++i)
    if (i < from) dims.push_back(x.size(i, at));
    else rest *= x.size(i, at);
  dims.push_back(rest);
  return reshape<Backend>(x, dims, at);
}
/// A view whose axis k is x's axis axes[k].
template <class Backend = host_backend>
tensor permute(tensor const& x, extents axes, std::source_location at = std::source_location::current()) {
  for (int i = 0; i < axes.rank(); ++i) axes[i] = detail::axis_of(x, axes[i], "permute", at);
  return apply<Backend>(op::permute{axes}, {x}, at);
}
/// A view with two axes exchanged.
template <class Backend = host_backend>
tensor transpose(tensor const& x, std::int64_t a = -2, std::int64_t b = -1,
                 std::source_location at = std::source_location::current()) {
  int const i = detail::axis_of(x, a, "transpose", at), j = detail::axis_of(x, b, "transpose", at);
  extents axes;
  for (int k = 0; k < x.rank(at); ++k) axes.push_back(k == i ? j : k == j ? i : k);
  return apply<Backend>(op::permute{axes}, {x}, at);
}
/// A view of the part [start, stop) of an axis; negative numbers count from its end.
template <class Backend = host_backend>
tensor slice(tensor const& x, std::int64_t axis, std::int64_t start, std::int64_t stop,
             std::source_location at = std::source_location::current()) {
  int const k = detail::axis_of(x, axis, "slice", at);
  auto const from_end = [&](std::int64_t i) { return i < 0 ? i + x.size(k, at) : i; };
  return apply<Backend>(op::slice{k, from_end(start), from_end(stop)}, {x}, at);
}
/// A view of one place of an axis, which is then gone.
template <class Backend = host_backend>
tensor select(tensor const& x, std::int64_t axis, std::int64_t i,
              std::source_location at = std::source_location::current()) {
  int const k = detail::axis_of(x, axis, "select", at);
  if (i < 0) i += x.size(k, at);
  shape dims = x.shape(at);
  dims.erase(k);
  return reshape<Backend>(apply<Backend>(op::slice{k, i, i + 1}, {x}, at), dims, at);
}
/// Views of equal parts of an axis, one after another. Throws neap::error if it does not divide.
template <class Backend = host_backend>
std::vector<tensor> split(tensor const& x, std::int64_t parts, std::int64_t axis = 0,
                          std::source_location at = std::source_location::current()) {
  return apply_all<Backend>(op::split{axis, parts}, {x}, at);
}
/// Views with an axis of extent 1 more, or less.
template <class Backend = host_backend>
tensor unsqueeze(tensor const& x, std::int64_t axis, std::source_location at = std::source_location::current()) {
  shape dims = x.shape(at);
  auto const place = axis < 0 ? axis + dims.rank() + 1 : axis;
  if (place < 0 || place > dims.rank())
    throw error(context_access::place(at),
                "unsqueeze: no place " + std::to_string(axis) + " in " + to_string(x.type()));
  detail::with_place(at, [&] { dims.insert(static_cast<int>(place), 1); });
  return reshape<Backend>(x, dims, at);
}
template <class Backend = host_backend>
tensor squeeze(tensor const& x, std::int64_t axis, std::source_location at = std::source_location::current()) {
  shape dims = x.shape(at);
  dims.erase(detail::axis_of(x, axis, "squeeze", at));
  return reshape<Backend>(x, dims, at);
}
/// A view in a larger shape: missing leading axes and axes of extent 1 repeat.
template <class Backend = host_backend>
tensor broadcast_to(tensor const& x, shape const& dims, std::source_location at = std::source_location::current()) {
  return dims == x.shape(at) ? x : apply<Backend>(op::broadcast_to{dims}, {x}, at);
}
/// One after another along an axis.
template <class Backend = host_backend>
tensor concat(std::vector<tensor> const& parts, std::int64_t axis = 0,
              std::source_location at = std::source_location::current()) {
  return apply_all<Backend>(op::concat{axis}, std::span<tensor const>(parts), at).front();
}
/// `before` and `after` elements of `value` around an axis.
template <class Backend = host_backend>
tensor pad(tensor const& x, std::int64_t axis, std::int64_t before, std::int64_t after, double value = 0,
           std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::pad{axis, before, after, value}, {x}, at);
}
/// A tensor of one value, made anew: in a trace, by an op.
template <class Backend = host_backend>
tensor fill(shape const& dims, double value, dtype element = dtype::f32,
            std::source_location at = std::source_location::current()) {
  return apply<Backend>(op::fill{dims, element, value}, {}, at);
}

}  // namespace neap::inline v0
