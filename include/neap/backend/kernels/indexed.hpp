// Parts of a tensor by their numbers along an axis, picked or combined with others; and ones set at numbered places. All
// of it is copies, gathers and maps that are compiled anyhow.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/kernels/gather.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace neap::inline v0 {

namespace detail {

inline constexpr std::int64_t few_elements = 16;  // of a part: such are not worth a copy or a map each

/// Numbers [n] as they go with every line along an axis of `whole`, which has n places there.
inline tensor_ref numbers_through(tensor_ref const& index, tensor_ref const& whole, int axis) {
  tensor_ref lines{index.data, index.element, whole.dims, extents::filled(whole.rank(), 0)};
  lines.strides[axis] = index.strides[0];
  return lines;
}

inline void check_numbers(tensor_ref const& index, std::int64_t extent, char const* name) {
  auto const* const at = index.as<std::int64_t const>();
  for (std::int64_t i = 0; i < index.extent(0); ++i)
    if (auto const k = at[i * index.strides[0]]; k < 0 || k >= extent)
      throw_error({name, ": number ", k, " at place ", i, " is not below ", extent});
}

}  // namespace detail

/// out[..., i, ...] = in[..., index[i], ...] along `axis`; index [n] of i64. Any strides and element types. Throws
/// neap::error if a number is outside.
template <class Backend>
void index_select(Backend& b, tensor_ref const& out, tensor_ref const& in, tensor_ref const& index, int axis) {
  detail::check_numbers(index, in.dims[axis], "index_select");
  if (out.count() == 0) return;
  std::int64_t const part = out.count() / out.dims[axis];
  if (part <= detail::few_elements) return gather(b, out, in, detail::numbers_through(index, out, axis), axis);
  auto const* const at = index.as<std::int64_t const>();
  std::int64_t const step = index.strides[0];
  b.parallel_for(index.extent(0), (16383 + part) / part, [&, at, step](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      copy(b, slice_view(out, axis, i, 1), slice_view(in, axis, at[i * step], 1));
  });
}

namespace detail {
/// out[..., index[i], ...] = sum(out[..., index[i], ...], source[..., i, ...]) along `axis`, in the order of i.
template <class Backend, class F>
void add_parts(Backend& b, F const& sum, tensor_ref const& out, tensor_ref const& index, tensor_ref const& source,
               int axis) {
  std::int64_t const part = source.count() / source.dims[axis];
  if (part <= few_elements && is_floating(source.element))
    return scatter_add(b, out, source, numbers_through(index, source, axis), axis);
  auto const* const at = index.as<std::int64_t const>();
  std::int64_t const step = index.strides[0], n = index.extent(0);
  // Cut along the widest other axis: each piece adds all its parts in order.
  int across = axis == 0 ? source.rank() - 1 : 0;
  for (int k = 0; k < source.rank(); ++k)
    if (k != axis && (across == axis || source.dims[k] > source.dims[across])) across = k;
  if (across == axis) across = -1;  // the only one
  std::int64_t const width = across < 0 ? 1 : source.dims[across], narrow = part / width;
  b.parallel_for(width, (8191 + narrow) / narrow, [&, at, step](std::int64_t begin, std::int64_t end) {
    tensor_ref const to = across < 0 ? out : slice_view(out, across, begin, end - begin);
    tensor_ref const from = across < 0 ? source : slice_view(source, across, begin, end - begin);
    for (std::int64_t i = 0; i < n; ++i) {
      tensor_ref const place = slice_view(to, axis, at[i * step], 1);
      map(b, sum, place, place, slice_view(from, axis, i, 1));
    }
  });
}
}  // namespace detail

/// out = in, then out[..., index[i], ...] = sum(out[..., index[i], ...], source[..., i, ...]) along `axis`, in the order
/// of i; `sum` is a functor that adds two numbers (a map that the program has already). Of bf16 and f16 the sums are f32
/// in the workspace (full_sums_workspace). Throws neap::error if a number is outside.
template <class Backend, class F>
void index_add(Backend& b, F const& sum, tensor_ref const& out, tensor_ref const& in, tensor_ref const& index,
               tensor_ref const& source, int axis, void* workspace) {
  detail::check_numbers(index, in.dims[axis], "index_add");
  if (source.count() == 0) return copy(b, out, in);
  tensor_ref const sums = full_sums(out, workspace);
  if (is_low(out.element)) cast(b, sums, in);
  else copy(b, sums, in);
  detail::add_parts(b, sum, sums, index, source, axis);
  if (is_low(out.element)) cast(b, out, sums);
}

/// out[..., k] = 1 where k is ids[...], else 0; ids of i64 and out are dense. Throws neap::error if an id is none of the
/// places of the last axis.
template <class Backend>
void one_hot(Backend& b, tensor_ref const& out, tensor_ref const& ids) {
  fill(b, out, 0);
  std::uint64_t bits = 0;
  fill(b, tensor_ref{&bits, out.element, {}, {}}, 1);
  auto const* const id = ids.as<std::int64_t const>();
  std::int64_t const classes = out.extent(-1), size = size_of(out.element);
  for (std::int64_t i = 0; i < ids.count(); ++i) {
    if (id[i] < 0 || id[i] >= classes)
      throw_error({"one_hot: id ", id[i], " at place ", i, " is not a class below ", classes});
    std::memcpy(static_cast<std::byte*>(out.data) + (i * classes + id[i]) * size, &bits,
                static_cast<std::size_t>(size));
  }
}

}  // namespace neap::inline v0
