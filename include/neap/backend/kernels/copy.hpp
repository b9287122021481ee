// Moving elements without computing: strided copies, fills, slices, concatenation, padding. Where the fastest axes of
// source and destination differ (a transpose), tiles keep both sides within the cache.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/strided.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace neap { inline namespace v0 {

namespace detail {

/// Two operands of one shape, adjacent axes joined where both allow it.
struct paired {
  int rank = 0;
  std::int64_t dims[max_rank]{}, to[max_rank]{}, from[max_rank]{};
};

inline paired pair_up(tensor_ref const& out, tensor_ref const& in) {
  paired p;
  int const missing = out.rank() - in.rank();
  expect(missing >= 0, "copy: the source has more axes than the destination");
  for (int axis = 0; axis < out.rank(); ++axis) {
    std::int64_t const extent = out.dims[axis];
    std::int64_t const given = axis < missing ? 1 : in.dims[axis - missing];
    if (given != extent && given != 1) throw_error({"copy: shapes differ: ", in.dims, " to ", out.dims});
    if (extent == 1) continue;
    std::int64_t const from = given == 1 ? 0 : in.strides[axis - missing], to = out.strides[axis];
    int const last = p.rank - 1;
    if (last >= 0 && p.to[last] == to * extent && p.from[last] == from * extent) {
      p.dims[last] *= extent;
      p.to[last] = to;
      p.from[last] = from;
    } else {
      p.dims[p.rank] = extent;
      p.to[p.rank] = to;
      p.from[p.rank++] = from;
    }
  }
  return p;
}

template <class U, class Backend>
void copy_elements(Backend& b, paired p, U* out, U const* in) {
  if (p.rank == 0) p.rank = 1, p.dims[0] = 1, p.to[0] = p.from[0] = 1;
  int const last = p.rank - 1;
  int fastest = last;  // the source's fastest axis
  for (int axis = 0; axis < p.rank; ++axis)
    if (p.from[axis] == 1) fastest = axis;
  bool const transposes = fastest != last && p.from[last] != 0 && p.to[last] == 1;
  constexpr std::int64_t tile = 32;

  // Offsets of the index-th combination of the axes other than `last` and `skip`.
  auto const place = [p, last](std::int64_t index, int skip, std::int64_t& to, std::int64_t& from) {
    to = from = 0;
    for (int axis = last - 1; axis >= 0; --axis) {
      if (axis == skip) continue;
      std::int64_t const at = index % p.dims[axis];
      index /= p.dims[axis];
      to += at * p.to[axis];
      from += at * p.from[axis];
    }
  };
  std::int64_t outer = 1;
  for (int axis = 0; axis < last; ++axis)
    if (!(transposes && axis == fastest)) outer *= p.dims[axis];

  if (transposes) {
    std::int64_t const rows = p.dims[fastest], columns = p.dims[last];
    std::int64_t const row_tiles = (rows + tile - 1) / tile, column_tiles = (columns + tile - 1) / tile;
    std::int64_t const to_row = p.to[fastest], from_column = p.from[last];
    b.parallel_for(outer * row_tiles * column_tiles, 8, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        std::int64_t to = 0, from = 0;
        place(t / (row_tiles * column_tiles), fastest, to, from);
        std::int64_t const row0 = t / column_tiles % row_tiles * tile, column0 = t % column_tiles * tile;
        std::int64_t const row1 = std::min(rows, row0 + tile), column1 = std::min(columns, column0 + tile);
        // Through a buffer, so that lines of the source are read whole: strides are often powers of two, and such lines
        // would drive each other out of the cache.
        U buffer[tile][tile + 1];
        for (std::int64_t column = column0; column < column1; ++column) {
          U const* const x = in + from + column * from_column + row0;
          for (std::int64_t row = 0; row < row1 - row0; ++row) buffer[column - column0][row] = x[row];
        }
        for (std::int64_t row = row0; row < row1; ++row) {
          U* const y = out + to + row * to_row + column0;
          for (std::int64_t column = 0; column < column1 - column0; ++column) y[column] = buffer[column][row - row0];
        }
      }
    });
    return;
  }
  // Runs along the last axis, long ones cut.
  std::int64_t const length = p.dims[last], to_stride = p.to[last], from_stride = p.from[last];
  constexpr std::int64_t run = 16384;
  std::int64_t const cuts = (length + run - 1) / run;
  std::int64_t const grain = std::max<std::int64_t>(1, run / std::max<std::int64_t>(1, std::min(length, run)));
  b.parallel_for(outer * cuts, grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      std::int64_t to = 0, from = 0;
      place(r / cuts, -1, to, from);
      std::int64_t const first = r % cuts * run, n = std::min(run, length - first);
      U* const y = out + to + first * to_stride;
      U const* const x = in + from + first * from_stride;
      if (to_stride == 1 && from_stride == 1) {
        std::memmove(y, x, static_cast<std::size_t>(n) * sizeof(U));
      } else if (to_stride == 1 && from_stride == 0) {
        U const value = *x;
        host_block{}.each(n, [=](std::int64_t i) { y[i] = value; });
      } else {
        for (std::int64_t i = 0; i < n; ++i) y[i * to_stride] = x[i * from_stride];
      }
    }
  });
}

/// f(pointer type of the element's size): element types of one size move alike.
template <class F>
void with_element_size(dtype t, F&& f) {
  switch (size_of(t)) {
    case 1: return f(type_tag<std::uint8_t>{});
    case 2: return f(type_tag<std::uint16_t>{});
    case 4: return f(type_tag<std::uint32_t>{});
    default: return f(type_tag<std::uint64_t>{});
  }
}

}  // namespace detail

/// out = in; `in` is broadcast to out's shape. Both may have any strides; they must not overlap. If the element types
/// differ, elements are cast. Throws neap::error if the shapes do not fit.
template <class Backend>
void copy(Backend& b, tensor_ref const& out, tensor_ref const& in) {
  if (out.element != in.element) return cast(b, out, in);
  if (out.count() == 0) return;
  if constexpr (device_backend<Backend>) {
    copy_on_device(b, out, in);  // cuda/kernels/copy.cuh
  } else {
    auto const p = detail::pair_up(out, in);
    detail::with_element_size(out.element, [&](auto tag) {
      using U = typename decltype(tag)::type;
      detail::copy_elements(b, p, out.as<U>(), in.as<U const>());
    });
  }
}

/// Every element of out becomes `value`.
template <class Backend>
void fill(Backend& b, tensor_ref const& out, double value) {
  alignas(8) std::byte x[8]{};
  detail::conversion_to<double>(out.element)(x, 1, &value, 1, 1);
  if constexpr (device_backend<Backend>) fill_on_device(b, out, __builtin_bit_cast(std::uint64_t, x));
  else copy(b, out, tensor_ref{x, out.element, {}, {}});
}

/// The part [begin, begin + length) of an axis, as a view.
inline tensor_ref slice_view(tensor_ref x, int axis, std::int64_t begin, std::int64_t length, std::int64_t step = 1) {
  if (axis < 0) axis += x.rank();
  x.data = static_cast<std::byte*>(x.data) + begin * x.strides[axis] * size_of(x.element);
  x.dims[axis] = length;
  x.strides[axis] *= step;
  return x;
}

/// Puts `in` into `out` at position `begin` of an axis: one piece of a concatenation.
template <class Backend>
void copy_into(Backend& b, tensor_ref const& out, int axis, std::int64_t begin, tensor_ref const& in) {
  copy(b, slice_view(out, axis, begin, in.extent(axis)), in);
}

/// out = the part of `in` that starts at `begin` of an axis and has out's extent there: a slice, every `step`-th.
template <class Backend>
void copy_slice(Backend& b, tensor_ref const& out, tensor_ref const& in, int axis, std::int64_t begin,
                std::int64_t step = 1) {
  copy(b, out, slice_view(in, axis, begin, out.extent(axis), step));
}

/// out = `in` with `value` around it: `before[axis]` elements in front, the rest of out's extents behind. Negative
/// `before` crops.
template <class Backend>
void pad(Backend& b, tensor_ref const& out, tensor_ref const& in, extents const& before, double value) {
  tensor_ref from = in, to = out;
  bool inner = true;
  for (int axis = 0; axis < out.rank(); ++axis) {
    std::int64_t const begin = std::max<std::int64_t>(0, before[axis]);
    std::int64_t const end = std::min(out.dims[axis], in.dims[axis] + before[axis]);
    inner = inner && end > begin;
    from = slice_view(from, axis, begin - before[axis], std::max<std::int64_t>(0, end - begin));
    to = slice_view(to, axis, begin, std::max<std::int64_t>(0, end - begin));
  }
  if (!(inner && to.count() == out.count())) fill(b, out, value);
  if (inner) copy(b, to, from);
}

}}  // namespace neap::v0
