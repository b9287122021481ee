// Reductions of what a program makes (op::fused_reduction) on a device: the program (op::fused), then the reduction, with
// the bits of the two operators. x lies in scratch memory in between, unless it is a result.
#pragma once

#include <neap/core/units.hpp>
#include <neap/cuda/kernels/fused.cuh>
#include <neap/cuda/kernels/reduce.cuh>
#include <neap/ir/operators/fused_reduction.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace neap::inline v0 {

namespace op {

namespace detail {

/// Scratch bytes of the reduction alone, behind which x lies, aligned.
inline bytes_t scratch_of_reduction(fused_reduction const& op, tensor_type const& x, dtype result) {
  constexpr bytes_t alignment = 256;
  auto const reduces = op.reduces(x.dims);
  auto const reduction = neap::detail::device_reduction(x.dims, reduces.data());
  return align_up(reduction.scratch(neap::detail::reduce_dtype(x.element, result)), alignment);
}

}  // namespace detail

inline bytes_t device_scratch(fused_reduction const& op, work_context const& c) {
  auto const x = op.x_type(c.in);
  return detail::scratch_of_reduction(op, x, c.out[0].type.element) + (op.keeps_x ? 0 : x.bytes());
}

template <device_backend B>
void run(B& b, fused_reduction const& op, kernel_arguments const& a) {
  auto const type = op.x_type(a.in);
  tensor_ref x{nullptr, type.element, type.dims, dense_strides(type.dims)};
  if (op.keeps_x) {
    x = a.out[1];
  } else {
    bytes_t const before = detail::scratch_of_reduction(op, type, a.out[0].element);
    x.data = static_cast<std::byte*>(b.scratch(before + type.bytes())) + before;
  }
  run(b, op.program(), {a.in, {&x, 1}});
  auto const reduces = op.reduces(type.dims);
  neap::detail::reduce_on_device(b, op.kind(), a.out[0], x, reduces.data());
}

}  // namespace op

}  // namespace neap::inline v0
