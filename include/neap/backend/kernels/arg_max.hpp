// The place of the largest element along an axis.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/rows.hpp>
#include <neap/core/math.hpp>

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

/// One block a line: the largest element, then the first place that equals it. `stride` is the line's.
template <class T>
struct arg_max_lines {
  row_layout lines;
  std::int64_t* out;
  std::int64_t length, stride;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    T const* const x = row_at<T const>(lines, b.id);
    std::int64_t const s = stride;
    T const low = lowest_of<T>;
    T top;
    if (s == 1)
      top = b.reduce_each(
          length, low, [=](std::int64_t i) { return x[i]; }, max_op{});
    else
      top = b.reduce_each(
          length, low, [=](std::int64_t i) { return x[i * s]; }, max_op{});
    bool const is_nan = top != top;
    std::int64_t const behind = length;
    std::int64_t const place = b.reduce_each(
        length, behind,
        [=](std::int64_t i) {
          T const v = x[i * s];
          bool const hit = is_nan ? v != v : v == top;
          return hit ? i : behind;
        },
        min_op{});
    std::int64_t* const to = out + b.id;
    b.once([=] { *to = place; });
  }
};

/// The same of small types, whose elements are all exact in double: in one pass, one element after another.
struct arg_max_converted_lines {
  row_layout lines;
  bytes_t element_bytes;
  convert_run_type to_double;
  std::int64_t* out;
  std::int64_t length, stride;

  template <class Block>
  void operator()(Block& b) const {
    constexpr std::int64_t chunk = 64;
    double values[chunk], top = 0;
    std::int64_t place = -1;
    auto const* const line = static_cast<std::byte const*>(lines.data) + lines.offset(b.id) * element_bytes;
    for (std::int64_t at = 0; at < length; at += chunk) {
      std::int64_t const n = length - at < chunk ? length - at : chunk;
      to_double(values, 1, line + at * stride * element_bytes, stride, n);
      for (std::int64_t i = 0; i < n; ++i) {
        double const v = values[i];
        if (place >= 0 && !(v > top) && !(v != v && top == top)) continue;
        top = v, place = at + i;
      }
    }
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
  auto const run = [&](auto tag) {
    b.launch(lines, detail::arg_max_lines<typename decltype(tag)::type>{rows, to, length, stride}, length);
  };
  switch (x.element) {
    case dtype::f64: return run(type_tag<double>{});
    case dtype::f32: return run(type_tag<float>{});
    case dtype::i64: return run(type_tag<std::int64_t>{});
    default:
      b.launch(lines,
               detail::arg_max_converted_lines{rows, size_of(x.element), detail::conversion_from<double>(x.element), to,
                                               length, stride},
               length);
  }
}

}}  // namespace neap::v0
