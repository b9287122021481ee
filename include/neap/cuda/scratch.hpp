// Scratch memory of kernels on a GPU. What the plan does not place, since a plan is the same on all devices, lies in one
// block that the launches of a stream share. An operator states how much its kernel takes by a function beside it:
//
//   bytes_t device_scratch(op::topk const&, work_context const&);
//
// and the kernel takes it by backend.scratch(bytes). An executable reserves the largest need of its plan before it runs.
#pragma once

#include <neap/core/units.hpp>
#include <neap/ir/operator.hpp>

#include <concepts>

namespace neap::inline v0 {

/// device_scratch(op, context): bytes that the operator's kernel takes of the backend's scratch memory.
template <class Op>
concept has_device_scratch = requires(Op const& op, work_context const& c) {
  { device_scratch(op, c) } -> std::convertible_to<bytes_t>;
};

namespace detail {
using scratch_function = bytes_t (*)(void const* op, work_context const&);

template <class Op>
bytes_t scratch_of(void const* op, work_context const& c) {
  return device_scratch(*static_cast<Op const*>(op), c);
}
/// nullptr: the kernel takes none.
template <class Op>
constexpr scratch_function scratch_or_null() {
  if constexpr (has_device_scratch<Op>) return &scratch_of<Op>;
  else return nullptr;
}
}  // namespace detail

}  // namespace neap::inline v0
