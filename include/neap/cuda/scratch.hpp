// Scratch memory of kernels on a GPU. What the plan does not place, since a plan is the same on all devices, lies in one
// block that the launches of a stream share. An operator states how much its kernel takes by a function beside it:
//
//   bytes_t device_scratch(op::topk const&, work_context const&);
//
// or, if a library of the backend may compute it, device_scratch(backend, op, context). The kernel takes it by
// backend.scratch(bytes). An executable reserves the largest need of its plan before it runs.
#pragma once

#include <neap/core/units.hpp>
#include <neap/ir/operator.hpp>

#include <concepts>

namespace neap { inline namespace v0 {

class cuda_backend;

/// device_scratch(op, context): bytes that the operator's kernel takes of the backend's scratch memory.
template <class Op>
concept has_device_scratch = requires(Op const& op, work_context const& c) {
  { device_scratch(op, c) } -> std::convertible_to<bytes_t>;
};

/// device_scratch(backend, op, context): likewise, on that backend.
template <class Op>
concept has_device_scratch_on_backend = requires(cuda_backend& b, Op const& op, work_context const& c) {
  { device_scratch(b, op, c) } -> std::convertible_to<bytes_t>;
};

namespace detail {
using scratch_function = bytes_t (*)(cuda_backend&, void const* op, work_context const&);

template <class Op>
bytes_t scratch_of(cuda_backend& b, void const* op, work_context const& c) {
  auto const& o = *static_cast<Op const*>(op);
  if constexpr (has_device_scratch_on_backend<Op>) return device_scratch(b, o, c);
  else return device_scratch(o, c);
}
/// nullptr: the kernel takes none.
template <class Op>
constexpr scratch_function scratch_or_null() {
  if constexpr (has_device_scratch<Op> || has_device_scratch_on_backend<Op>) return &scratch_of<Op>;
  else return nullptr;
}
}  // namespace detail

}}  // namespace neap::v0
