// The place of the largest element along an axis.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/math.hpp>
#include <neap/backend/rows.hpp>

#include <cstdint>
#include <type_traits>

namespace neap::inline v0 {

namespace detail {

/// One block a line: the largest element, then the first place that equals it. `stride` is the line's.
template <class T>
struct arg_max_lines {
  using element = T;
  using C = std::conditional_t<std::is_integral_v<T>, std::int64_t, compute_t<T>>;
  row_layout lines;
  std::int64_t* out;
  std::int64_t length, stride;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const x = row_at<T const>(lines, b.id);
    std::int64_t const s = stride;
    C const low = lowest_of<C>;
    C top;
    if (s == 1)
      top = b.reduce_each(
          length, low, [=](std::int64_t i) { return static_cast<C>(x[i]); }, max_op{});
    else
      top = b.reduce_each(
          length, low, [=](std::int64_t i) { return static_cast<C>(x[i * s]); }, max_op{});
    bool const is_nan = top != top;
    std::int64_t const behind = length;
    std::int64_t const place = b.reduce_each(
        length, behind,
        [=](std::int64_t i) {
          C const v = static_cast<C>(x[i * s]);
          bool const hit = is_nan ? v != v : v == top;
          return hit ? i : behind;
        },
        min_op{});
    out[b.id] = place;
  }
};

}  // namespace detail

/// out = the index of the largest element along `axis` (the first of equals; a NaN is larger than all), i64, dense, one
/// for each line in order. x may have any strides and any type. Throws neap::error if the axis is empty.
template <class Backend>
void arg_max(Backend& b, tensor_ref const& out, tensor_ref const& x, int axis = -1) {
  if (axis < 0) axis += x.rank();
  detail::expect(axis >= 0 && axis < x.rank() && x.dims[axis] > 0, "arg_max: no such axis, or an empty one");
  // The lines as rows of length 1: the axis is walked by its stride.
  tensor_ref starts = x;
  std::int64_t const length = x.dims[axis], stride = x.strides[axis], lines = x.count() / length;
  starts.dims.erase(axis), starts.strides.erase(axis);
  starts.dims.push_back(1), starts.strides.push_back(1);
  detail::row_layout const rows = detail::rows_of(starts, x.element, "arg_max");
  auto* const to = detail::vector_of<std::int64_t>(out, lines, "arg_max");
  with_type(x.element, [&](auto tag) {
    b.launch(lines, detail::arg_max_lines<typename decltype(tag)::type>{rows, to, length, stride}, length);
  });
}

}  // namespace neap::inline v0
