// Which elements of x the blocks of a function of rows or channels work on: op::fused runs what stands beside the function
// on them, right before and right after these blocks.
//
//   row functions   block r: row r; a norm's gradient: a group of rows
//   batch norm      block c: the planes (n, c, .) of all samples n; of planes of one element, a tile of channels
//   group norm      block (n, g): the planes of a group's channels, which follow one another
#pragma once

#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/group_norm.hpp>
#include <neap/backend/kernels/layer_norm.hpp>
#include <neap/backend/kernels/softmax.hpp>

#include <cstdint>

namespace neap { inline namespace v0 { namespace op::detail {

template <class F>
NEAP_HD NEAP_INLINE void each_range_of_channels(neap::detail::channel_shape const& s, std::int64_t begin,
                                                std::int64_t end, F const& f) {
  std::int64_t const of_block = s.plane != 1 ? 1 : neap::detail::channel_shape::tile, first = begin * of_block,
                     last = end * of_block < s.channels ? end * of_block : s.channels;
  for (std::int64_t n = 0; n < s.batch; ++n) f((n * s.channels + first) * s.plane, (n * s.channels + last) * s.plane);
}

/// f(first, last) for the ranges of x's elements that blocks [begin, end) of a kernel do, each element once.
template <class T, class F>
NEAP_HD NEAP_INLINE void each_range_of_blocks(neap::detail::norm_rows<T> const& k, std::int64_t begin, std::int64_t end,
                                              F const& f) {
  f(begin * k.o.columns, end * k.o.columns);
}
template <class T, class F>
NEAP_HD NEAP_INLINE void each_range_of_blocks(neap::detail::norm_backward_rows<T> const& k, std::int64_t begin,
                                              std::int64_t end, F const& f) {
  std::int64_t const last = end * k.o.group < k.o.rows ? end * k.o.group : k.o.rows;
  f(begin * k.o.group * k.o.columns, last * k.o.columns);
}
template <class T, bool Log, class F>
NEAP_HD NEAP_INLINE void each_range_of_blocks(neap::detail::softmax_rows<T, Log> const& k, std::int64_t begin,
                                              std::int64_t end, F const& f) {
  f(begin * k.columns, end * k.columns);
}
template <class T, bool Log, class F>
NEAP_HD NEAP_INLINE void each_range_of_blocks(neap::detail::softmax_backward_rows<T, Log> const& k, std::int64_t begin,
                                              std::int64_t end, F const& f) {
  f(begin * k.columns, end * k.columns);
}
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

struct element_range {
  NEAP_HD void operator()(std::int64_t, std::int64_t) const {}
};
/// Whether a kernel's blocks work on elements of x. (Others add up what groups have made.)
template <class K>
concept has_element_ranges = requires(K const& k) { each_range_of_blocks(k, 0, 0, element_range{}); };

}}}  // namespace neap::v0::op::detail
