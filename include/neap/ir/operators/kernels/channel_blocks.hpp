// Which elements of x the blocks of a norm of channels work on: op::fused_rows runs what stands beside the norm on them,
// right before and right after these blocks.
//
//   batch norm   block c: the planes (n, c, .) of all samples n; of planes of one element, a tile of channels
//   group norm   block (n, g): the planes of a group's channels, which follow one another
#pragma once

#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/group_norm.hpp>

#include <cstdint>

namespace neap { inline namespace v0 { namespace op::detail {

template <class K>
inline constexpr bool is_channel_kernel = false;
template <class T>
inline constexpr bool is_channel_kernel<neap::detail::batch_norm_channels<T>> = true;
template <class T, bool Relu>
inline constexpr bool is_channel_kernel<neap::detail::batch_norm_backward_channels<T, Relu>> = true;
template <class T>
inline constexpr bool is_channel_kernel<neap::detail::group_norm_groups<T>> = true;
template <class T>
inline constexpr bool is_channel_kernel<neap::detail::group_norm_backward_groups<T>> = true;

template <class F>
NEAP_HD NEAP_INLINE void each_range_of_channels(neap::detail::channel_shape const& s, std::int64_t begin,
                                                std::int64_t end, F const& f) {
  std::int64_t const of_block = s.plane != 1 ? 1 : neap::detail::channel_shape::tile, first = begin * of_block,
                     last = end * of_block < s.channels ? end * of_block : s.channels;
  for (std::int64_t n = 0; n < s.batch; ++n) f((n * s.channels + first) * s.plane, (n * s.channels + last) * s.plane);
}

/// Calls f(first, last) for the ranges of x's elements that blocks [begin, end) of a kernel of channels do, each element
/// once.
template <class T, class F>
NEAP_HD NEAP_INLINE void each_range_of_blocks(neap::detail::batch_norm_channels<T> const& k, std::int64_t begin,
                                              std::int64_t end, F const& f) {
  each_range_of_channels(k.affine.s, begin, end, f);
}
template <class T, bool Relu, class F>
NEAP_HD NEAP_INLINE void each_range_of_blocks(neap::detail::batch_norm_backward_channels<T, Relu> const& k,
                                              std::int64_t begin, std::int64_t end, F const& f) {
  each_range_of_channels(k.s, begin, end, f);
}
template <class T, class F>
NEAP_HD NEAP_INLINE void each_range_of_blocks(neap::detail::group_norm_groups<T> const& k, std::int64_t begin,
                                              std::int64_t end, F const& f) {
  f(begin * k.o.width * k.o.plane, end * k.o.width * k.o.plane);
}
template <class T, class F>
NEAP_HD NEAP_INLINE void each_range_of_blocks(neap::detail::group_norm_backward_groups<T> const& k, std::int64_t begin,
                                              std::int64_t end, F const& f) {
  f(begin * k.o.width * k.o.plane, end * k.o.width * k.o.plane);
}

}}}  // namespace neap::v0::op::detail
