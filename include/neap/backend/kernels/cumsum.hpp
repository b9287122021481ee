// Running sums along an axis, added in double (integers in i64) and rounded where they are written: a sum of many floats
// does not drift.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/strided.hpp>

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

/// A tensor as [outer, n, inner] of the linear index, summed along n.
template <class C>
struct running_sums {
  static constexpr std::int64_t tile = 256;
  strided in, out;
  std::int64_t n, inner;
  bool reverse;

  /// Columns [first, first + width) of one outer place, side by side.
  void columns(std::int64_t outer, std::int64_t first, std::int64_t width) const {
    C sum[tile]{}, x[tile];
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t const at = (outer * n + (reverse ? n - 1 - i : i)) * inner + first;
      gather(in, at, width, x);
      host_block{}.each(width, [&](std::int64_t k) { sum[k] += x[k]; });
      scatter(out, at, width, static_cast<C const*>(sum));
    }
  }
  /// One line whose elements follow one another.
  void line(std::int64_t outer) const {
    C sum = 0, x[tile];
    for (std::int64_t begin = 0; begin < n; begin += tile) {
      std::int64_t const count = std::min(tile, n - begin);
      std::int64_t const at = outer * n + (reverse ? n - begin - count : begin);
      gather(in, at, count, x);
      for (std::int64_t i = 0; i < count; ++i) {
        C& v = x[reverse ? count - 1 - i : i];
        v = sum += v;
      }
      scatter(out, at, count, static_cast<C const*>(x));
    }
  }
};

template <class C, class Backend>
void sum_along(Backend& b, running_sums<C> const& sums, std::int64_t outer) {
  std::int64_t const tiles = (sums.inner + sums.tile - 1) / sums.tile;
  std::int64_t const grain = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, sums.n * sums.inner / tiles));
  b.parallel_for(outer * tiles, grain, [&, tiles](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k) {
      std::int64_t const first = k % tiles * sums.tile;
      if (sums.inner == 1) sums.line(k);
      else sums.columns(k / tiles, first, std::min(sums.tile, sums.inner - first));
    }
  });
}

}  // namespace detail

/// out[..., i, ...] = in[..., 0, ...] + ... + in[..., i, ...] along `axis`, or from the end back if `reverse`. Any
/// strides; in of integers or booleans is summed in i64. out may lie exactly on in.
template <class Backend>
void cumsum(Backend& b, tensor_ref const& out, tensor_ref const& in, int axis, bool reverse) {
  if (in.count() == 0) return;
  std::int64_t outer = 1, inner = 1;
  for (int k = 0; k < in.rank(); ++k)
    if (k != axis) (k < axis ? outer : inner) *= in.dims[k];
  auto const x = detail::view_through(in.dims, in), y = detail::view_through(in.dims, out);
  std::int64_t const n = in.dims[axis];
  if (is_floating(in.element)) detail::sum_along(b, detail::running_sums<double>{x, y, n, inner, reverse}, outer);
  else detail::sum_along(b, detail::running_sums<std::int64_t>{x, y, n, inner, reverse}, outer);
}

}}  // namespace neap::v0
