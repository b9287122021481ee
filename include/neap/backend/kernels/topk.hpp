// The k largest or smallest elements of each line along an axis, in order, and their places. Elements of all types are
// ranked by whole numbers that order as they do, in a heap of the k best so far: O(n log k), or a heap sort where k is n.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/gather.hpp>
#include <neap/backend/strided.hpp>
#include <neap/core/units.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

struct ranked_place {
  std::int64_t rank = 0, place = 0;
  /// Whether b comes first: the one of higher rank, of equals the one of lower place.
  friend bool is_behind(ranked_place const& a, ranked_place const& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.place > b.place;
  }
};

/// A number's rank: equal for both zeros, highest for a NaN.
NEAP_HD inline std::int64_t rank_of(double x) {
  if (x != x) return INT64_MAX;
  auto const bits = __builtin_bit_cast(std::int64_t, x + 0.0);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}
NEAP_HD inline std::int64_t rank_of(std::int64_t x) { return x; }

/// Restores a heap whose top is the last in order, after h[i] has changed.
inline void sink(ranked_place* h, std::int64_t n, std::int64_t i) {
  for (std::int64_t c = 2 * i + 1; c < n; c = 2 * i + 1) {
    if (c + 1 < n && is_behind(h[c + 1], h[c])) ++c;
    if (!is_behind(h[c], h[i])) return;
    std::swap(h[c], h[i]);
    i = c;
  }
}

/// The k best of a line of n elements, into h in order.
template <class C>
void rank_line(strided const& line, std::int64_t n, std::int64_t k, bool largest, ranked_place* h) {
  C values[256];
  std::int64_t kept = 0;
  for (std::int64_t begin = 0; begin < n; begin += 256) {
    std::int64_t const count = std::min<std::int64_t>(256, n - begin);
    gather(line, begin, count, values);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t const rank = rank_of(values[i]);
      ranked_place const x{largest ? rank : ~rank, begin + i};
      if (kept < k) {
        h[kept++] = x;
        for (std::int64_t j = kept == k ? k / 2 : 0; j-- > 0;) sink(h, k, j);
      } else if (is_behind(h[0], x)) {
        h[0] = x;
        sink(h, k, 0);
      }
    }
  }
  for (std::int64_t m = k - 1; m > 0; --m) {
    std::swap(h[0], h[m]);
    sink(h, m, 0);
  }
}

/// Lines are ranked in so many groups at most, each in a heap of its own.
inline constexpr std::int64_t topk_groups = 32;

}  // namespace detail

/// Bytes of workspace of topk for an input of this shape.
inline bytes_t topk_workspace(shape const& x, std::int64_t k, int axis) {
  std::int64_t lines = 1;
  for (int i = 0; i < x.rank(); ++i) lines *= i == axis ? 1 : x[i];
  std::int64_t const heap = checked_mul(k, static_cast<std::int64_t>(sizeof(detail::ranked_place)));
  return checked_mul(std::min(lines, detail::topk_groups), heap);
}

/// values, places (i64) = the k largest elements of each line of x along `axis`, the largest first, or the k smallest,
/// the smallest first; of equals the one at the lower place. A NaN is larger than all. Any strides and element types;
/// 0 <= k <= the axis' extent.
template <class Backend>
void topk(Backend& b, tensor_ref const& values, tensor_ref const& places, tensor_ref const& x, std::int64_t k, int axis,
          bool largest, void* workspace) {
  if (values.count() == 0) return;
  detail::gather_lines const w{places, x, values, axis, "topk"};
  std::int64_t const n = x.dims[axis], groups = std::min(w.lines, detail::topk_groups);
  auto const size = static_cast<std::size_t>(size_of(x.element));
  auto* const place = places.as<std::int64_t>();
  auto* const value = static_cast<std::byte*>(values.data);
  auto* const from = static_cast<std::byte*>(x.data);
  bool const floating = is_floating(x.element);
  b.parallel_for(groups, 1, [&, n, k, largest](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group)
      for (std::int64_t l = w.lines * group / groups; l < w.lines * (group + 1) / groups; ++l) {
        std::int64_t at_place = 0, at_x = 0, at_value = 0;
        w.place(l, at_place, at_x, at_value);
        auto* const h = static_cast<detail::ranked_place*>(workspace) + group * k;
        detail::strided const line{from + at_x * static_cast<std::int64_t>(size), x.element, 1, {n}, {w.b_step}};
        if (floating) detail::rank_line<double>(line, n, k, largest, h);
        else detail::rank_line<std::int64_t>(line, n, k, largest, h);
        for (std::int64_t j = 0; j < k; ++j) {
          place[at_place + j * w.a_step] = h[j].place;
          std::memcpy(value + (at_value + j * w.c_step) * static_cast<std::int64_t>(size),
                      line.at(h[j].place * w.b_step), size);
        }
      }
  });
}

}}  // namespace neap::v0
