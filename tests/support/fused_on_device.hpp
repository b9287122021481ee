// Fused operators on devices of tests, which have no launches of products: those that are none.
#pragma once

#include <neap/cuda/kernels/fused_norms.cuh>
#include <neap/cuda/kernels/fused_reduction.cuh>

#include "operator_cases.hpp"

#include <initializer_list>

namespace neap::testing {

/// As run(), of an operator that is no product.
template <class B>
void run_fused(B& b, op::fused const& op, kernel_arguments const& a) {
  if constexpr (!device_backend<B>) run(b, op, a);
  else if (op.is_reduction()) neap::detail::run_reduction_of_program(b, op, a);
  else if (op.has_anchor()) neap::detail::run_norm_between(b, op, a);
  else neap::detail::run_program(b, op.prologue, a);
}
template <class B>
void run_operator(B& b, case_memory& m, op::fused const& op, std::initializer_list<tensor_ref> in,
                  std::initializer_list<tensor_ref> out) {
  auto const from = layouts_of(in), to = layouts_of(out);
  run_fused(b, op, {{in.begin(), in.size()}, {out.begin(), out.size()}, m.work(op.workspace({from, to}))});
}

}  // namespace neap::testing
