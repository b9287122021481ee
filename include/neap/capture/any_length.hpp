// Lengths of tensors that do not make another graph of a compiled function: what the user says of an axis.
#pragma once

#include <neap/core/tensor_type.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// Calls that differ in the length of this axis alone have one graph, while the length is within the bounds:
/// compile(f, {.lengths = {any_length(1)}}). Of each such length one call is captured, and its operators are planned after
/// the plan of the first length, without a search. Weights and buffers keep their lengths.
struct any_length {
  static constexpr std::size_t every_argument = static_cast<std::size_t>(-1);

  int axis = 0;  ///< negative: from the last
  std::int64_t at_least = 1;
  std::int64_t at_most = INT64_MAX;
  std::size_t argument = every_argument;  ///< of the tensors in this argument, counted from 1
};

namespace detail {
/// Whether one of these says of axis k of a tensor in that argument (counted from 0) that its length may change.
inline bool may_change(std::vector<any_length> const& lengths, std::size_t argument, tensor_type const& t, int k) {
  for (auto const& l : lengths)
    if ((l.argument == any_length::every_argument || l.argument == argument + 1) &&
        (l.axis < 0 ? l.axis + t.rank() : l.axis) == k && t.dims[k] >= l.at_least && t.dims[k] <= l.at_most)
      return true;
  return false;
}
}  // namespace detail

}}  // namespace neap::v0
