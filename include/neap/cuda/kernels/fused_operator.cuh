// Fused operators (op::fused) on a GPU.
#pragma once

#include <neap/cuda/kernels/fused_norms.cuh>
#include <neap/cuda/kernels/fused_product.cuh>
#include <neap/cuda/kernels/fused_reduction.cuh>

namespace neap { inline namespace v0 { namespace op {

inline bytes_t device_scratch(fused const& op, work_context const& c) {
  return op.is_product()     ? neap::detail::device_scratch_of_product(op, c)
         : op.is_reduction() ? neap::detail::device_scratch_of_reduction(op, c)
                             : 0;
}

template <device_backend B>
void run(B& b, fused const& op, kernel_arguments const& a) {
  if (op.is_product()) neap::detail::run_product(b, op, a);
  else if (op.is_reduction()) neap::detail::run_reduction_of_program(b, op, a);
  else if (op.has_anchor()) neap::detail::run_norm_between(b, op, a);
  else neap::detail::run_program(b, op.prologue, a);
}

}}}  // namespace neap::v0::op
