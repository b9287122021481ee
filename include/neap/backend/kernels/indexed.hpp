// Parts of a tensor by their numbers along an axis, picked or combined with others; and ones set at numbered places. All
// of it is copies, gathers and maps that are compiled anyhow.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/kernels/gather.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace neap { inline namespace v0 {

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

/// sums += x, element by element, compensated (add_compensated).
__attribute__((noinline)) inline void add_compensated(tensor_ref const& sums, tensor_ref const& lost,
                                                      tensor_ref const& x) {
  constexpr std::int64_t some = 512;
  alignas(64) float sum_room[some], lost_room[some], term_room[some];
  strided const to = view_through(x.dims, sums), errors = view_through(x.dims, lost), from = view_through(x.dims, x);
  std::int64_t const count = x.count();
  for (std::int64_t at = 0; at < count; at += some) {
    std::int64_t const n = std::min(some, count - at);
    auto const in_place = [&](strided const& v, float* room) {
      if (float* p = direct<float>(v, at, n)) return p;
      gather(v, at, n, room);
      return room;
    };
    float *const s = in_place(to, sum_room), *const e = in_place(errors, lost_room);
    float const* const t = staged(from, at, n, term_room);
    host_block{}.each(n, [=](std::int64_t i) { add_compensated(s[i], e[i], t[i]); });
    if (s == sum_room) scatter(to, at, n, static_cast<float const*>(s));
    if (e == lost_room) scatter(errors, at, n, static_cast<float const*>(e));
  }
}

/// to.sums[..., index[i], ...] = sum(to.sums[..., index[i], ...], source[..., i, ...]) along `axis`, in the order of i.
template <class Backend, class F>
void add_parts(Backend& b, F const& sum, numbered_sums const& to, tensor_ref const& index, tensor_ref const& source,
               int axis) {
  std::int64_t const part = source.count() / source.dims[axis];
  if (part <= few_elements && is_floating(source.element))
    return scatter_add(b, to, source, numbers_through(index, source, axis), axis);
  auto const* const at = index.as<std::int64_t const>();
  std::int64_t const step = index.strides[0], n = index.extent(0);
  // Cut along the widest other axis: each piece adds all its parts in order.
  int across = axis == 0 ? source.rank() - 1 : 0;
  for (int k = 0; k < source.rank(); ++k)
    if (k != axis && (across == axis || source.dims[k] > source.dims[across])) across = k;
  if (across == axis) across = -1;  // the only one
  std::int64_t const width = across < 0 ? 1 : source.dims[across], narrow = part / width;
  b.parallel_for(width, (8191 + narrow) / narrow, [&, at, step](std::int64_t begin, std::int64_t end) {
    auto const piece = [&](tensor_ref const& x) { return across < 0 ? x : slice_view(x, across, begin, end - begin); };
    tensor_ref const sums = piece(to.sums), from = piece(source);
    bool const compensates = to.lost.data != nullptr;
    tensor_ref const lost = compensates ? piece(to.lost) : tensor_ref{};
    for (std::int64_t i = 0; i < n; ++i) {
      tensor_ref const place = slice_view(sums, axis, at[i * step], 1), terms = slice_view(from, axis, i, 1);
      if (compensates) add_compensated(place, slice_view(lost, axis, at[i * step], 1), terms);
      else map(b, sum, place, place, terms);
    }
  });
}
}  // namespace detail

/// out = in, then out[..., index[i], ...] = sum(out[..., index[i], ...], source[..., i, ...]) along `axis`, in the order
/// of i; `sum` is a functor that adds two numbers (a map that the program has already). Floats are added as numbered_sums
/// says, in its workspace for index.count() terms. Throws neap::error if a number is outside.
template <class Backend, class F>
void index_add(Backend& b, F const& sum, tensor_ref const& out, tensor_ref const& in, tensor_ref const& index,
               tensor_ref const& source, int axis, void* workspace) {
  detail::check_numbers(index, in.dims[axis], "index_add");
  if (source.count() == 0) return copy(b, out, in);
  numbered_sums const to = numbered_sums_of(b, out, index.count(), workspace);
  if (is_low(out.element)) cast(b, to.sums, in);
  else copy(b, to.sums, in);
  detail::add_parts(b, sum, to, index, source, axis);
  if (is_low(out.element)) cast(b, out, to.sums);
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

}}  // namespace neap::v0
