// Products between which and their results a program stands, or with sums beside them (op::fused), on a GPU: one call where
// the backend's product library has that epilogue for such a product; else the product, and then the program in its place,
// or the sums. Which of them it is depends on types, extents and alignments: a recomputed result has the same bits.
#pragma once

#include <neap/cuda/kernels/fused.cuh>
#include <neap/cuda/kernels/matmul.hpp>
#include <neap/cuda/kernels/reduce.cuh>
#include <neap/ir/operators/kernels/fused.hpp>

#include <algorithm>
#include <cstddef>

namespace neap { inline namespace v0 { namespace detail {

/// The epilogue as a library has it; none: it is not one of a library's.
inline product_epilogue_call library_epilogue(op::fused const& op, kernel_arguments const& a) {
  void* const sums = a.out.back().data;
  if (op.summed() >= 0)
    return {op.summed() == 0 ? product_epilogue::sums_of_a : product_epilogue::sums_of_b, sums, nullptr};
  auto const& p = op.epilogue;
  auto const reads = [&](int k, int x, int y) {
    return p.step(k).operands[0] == x && p.step(k).operands[1] == y && p.step(k).element == a.out[0].element;
  };
  bool const by_tanh = p.constant_count == 1 && p.constants[0] == 1, adds_up = op.sums == product_sums::of_result;
  auto const& other = a.in[2];
  if (p.inputs != 2) return {};
  if (p.step_count == 1 && p.is<op::gelu_grad>(0) && by_tanh && reads(0, 0, 1) && other.dims == a.out[0].dims)
    return adds_up ? product_epilogue_call{product_epilogue::gelu_grad_sums, sums, other.data}
                   : product_epilogue_call{product_epilogue::gelu_grad, nullptr, other.data};
  bool const biased = p.is<op::add>(0) && reads(0, 0, 1) && other.rank() == 1 && other.dims[0] == a.out[0].dims.back();
  if (!biased || adds_up) return {};
  if (p.step_count == 1) return {product_epilogue::bias, other.data, nullptr};
  if (p.step_count > 2 || !reads(1, 2, 0)) return {};
  if (p.is<op::relu>(1) && !op.keeps_step)  // what libraries keep for relu is bits
    return {product_epilogue::bias_relu, other.data, nullptr};
  if (!p.is<op::gelu>(1) || !by_tanh) return {};
  return op.keeps_step ? product_epilogue_call{product_epilogue::bias_gelu_kept, other.data, a.out[1].data}
                       : product_epilogue_call{product_epilogue::bias_gelu, other.data, nullptr};
}
/// Whether a library can read the third input: dense, and with what is written beside z aligned.
inline bool suits_library(product_epilogue_call const& e, op::fused const& op, kernel_arguments const& a) {
  return e.kind != product_epilogue::none && alignment_of(e.vector, 0, 1) == 16 && alignment_of(e.matrix, 0, 1) == 16 &&
         (op.summed() >= 0 || a.in[2].is_dense());
}
inline matmul_plan plan_of_product(op::fused const& op, kernel_arguments const& a) {
  return matmul_plan::of(a.in[0], a.in[1], a.out[0], {op.transpose_a, op.transpose_b, false});
}

/// Whether the backend's library makes a product and its epilogue in one call; else why not.
template <class B>
cuda_library_way epilogue_way(B& backend, op::fused const& op, kernel_arguments const& a) {
  if constexpr (requires { backend.products(); })
    if (auto* const library = backend.products()) {
      auto const plan = plan_of_product(op, a);
      auto const e = library_epilogue(op, a);
      if (plan.batch_rank > 1) return {false, "batches lie along more than one axis"};
      if (!suits_library(e, op, a)) return {false, "no library has the epilogue for such operands"};
      return library->way(product_of(plan, a.out[0].element, a.in[0].data, a.in[1].data, a.out[0].data), e.kind);
    }
  return {false, "the backend has no product library"};
}

inline bytes_t device_scratch_of_product(op::fused const& op, work_context const& c) {
  bytes_t const of_product = device_scratch(op.anchor_as<op::matmul>(), c);
  if (op.sums == product_sums::none) return of_product;
  return std::max(of_product, device_scratch(op::sum_to{}, {std::span(&op.summed_of(c.in, c.out), 1), c.out.last(1)}));
}

/// Runs a product with steps after it or sums beside it.
template <device_backend B>
void run_product(B& b, op::fused const& op, kernel_arguments const& a) {
  if constexpr (requires { b.products(); })
    if (epilogue_way(b, op, a).by_library) {
      auto& library = *b.products();
      void const *x = a.in[0].data, *w = a.in[1].data;
      return library.run(b.stream(), product_of(plan_of_product(op, a), a.out[0].element, x, w, a.out[0].data), x, w,
                         a.out[0].data, library_epilogue(op, a), b.scratch(library.scratch_bytes()));
    }
  auto const z = a.out.first(1);
  if (op.keeps_step) {  // the bias may have an epilogue of its own
    auto first = op;
    first.epilogue = op.first_step(), first.keeps_step = false;
    run_product(b, first, {a.in, a.out.subspan(1, 1), a.workspace});
    return run_program(b, op.second_step(), {a.out.subspan(1, 1), z});
  }
  run(b, op.anchor_as<op::matmul>(), {a.in.first(2), z, a.workspace});
  if (!op.epilogue.empty()) {
    op::detail::fused_operands const operands(op, a);
    run_program(b, op.epilogue, operands.epilogue(op, a));
  }
  if (op.sums != product_sums::none)
    run(b, op::sum_to{a.out.back().dims},
        {std::span(&op.summed_of<tensor_ref>(a.in, a.out), 1), a.out.last(1), a.workspace});
}

}}}  // namespace neap::v0::detail
