// Products with an epilogue on a GPU: one call where the backend's product library has the epilogue for such a product;
// else the product, and then a fused program in its place, or the sums. Which of them it is depends on types, extents and
// alignments: a recomputed result has the same bits.
#pragma once

#include <neap/cuda/kernels/fused.cuh>
#include <neap/cuda/kernels/matmul.hpp>
#include <neap/cuda/kernels/reduce.cuh>
#include <neap/ir/operators/kernels/matmul_epilogue.hpp>

#include <algorithm>
#include <cstddef>

namespace neap { inline namespace v0 {

namespace detail {

/// The epilogue as a library has it; none: it is not one of a library's.
inline product_epilogue_call library_epilogue(op::matmul_epilogue const& op, kernel_arguments const& a) {
  switch (op.follows()) {
    case epilogue::bias: return {product_epilogue::bias, a.in[2].data, nullptr};
    case epilogue::bias_relu:  // what libraries keep for relu is bits
      return op.keeps ? product_epilogue_call{}
                      : product_epilogue_call{product_epilogue::bias_relu, a.in[2].data, nullptr};
    case epilogue::bias_gelu:
      return op.keeps ? product_epilogue_call{product_epilogue::bias_gelu_kept, a.in[2].data, a.out[1].data}
                      : product_epilogue_call{product_epilogue::bias_gelu, a.in[2].data, nullptr};
    case epilogue::gelu_grad: return {product_epilogue::gelu_grad, nullptr, a.in[2].data};
    case epilogue::sums_of_a: return {product_epilogue::sums_of_a, a.out[1].data, nullptr};
    case epilogue::sums_of_b: return {product_epilogue::sums_of_b, a.out[1].data, nullptr};
    case epilogue::gelu_grad_sums: return {product_epilogue::gelu_grad_sums, a.out[1].data, a.in[2].data};
  }
  return {};
}
/// Whether a library can read the third input: dense, and with what is written beside y aligned.
inline bool suits_library(product_epilogue_call const& e, op::matmul_epilogue const& op, kernel_arguments const& a) {
  return e.kind != product_epilogue::none && alignment_of(e.vector, 0, 1) == 16 && alignment_of(e.matrix, 0, 1) == 16 &&
         (op.summed() >= 0 || a.in[2].is_dense());
}

/// How a product with an epilogue is made on this backend.
template <class B>
cuda_library_way way_of(B& backend, op::matmul_epilogue const& op, kernel_arguments const& a) {
  if constexpr (requires { backend.products(); })
    if (auto* const library = backend.products()) {
      auto const plan = matmul_plan::of(a.in[0], a.in[1], a.out[0], {op.transpose_a, op.transpose_b, false});
      auto const e = library_epilogue(op, a);
      if (plan.batch_rank > 1) return {false, "batches lie along more than one axis"};
      if (!suits_library(e, op, a)) return {false, "no library has the epilogue for such operands"};
      return library->way(product_of(plan, a.out[0].element, a.in[0].data, a.in[1].data, a.out[0].data), e.kind);
    }
  return {false, "the backend has no product library"};
}

}  // namespace detail

/// Whether the backend's library makes a product and its epilogue in one call; else why not.
template <device_backend B>
cuda_library_way epilogue_way(B& backend, op::matmul_epilogue const& op, kernel_arguments const& a) {
  return detail::way_of(backend, op, a);
}

namespace op {

inline bytes_t device_scratch(matmul_epilogue const& op, work_context const& c) {
  bytes_t const of_product = device_scratch(op.product(), c);
  if (!op.has_sums()) return of_product;
  return std::max(of_product, device_scratch(sum_to{}, {std::span(&op.summed_of(c.in, c.out), 1), c.out.last(1)}));
}

template <device_backend B>
void run(B& b, matmul_epilogue const& op, kernel_arguments const& a) {
  auto const element = a.out[0].element;
  if constexpr (requires { b.products(); })
    if (neap::detail::way_of(b, op, a).by_library) {
      auto& library = *b.products();
      auto const plan =
          neap::detail::matmul_plan::of(a.in[0], a.in[1], a.out[0], {op.transpose_a, op.transpose_b, false});
      void const *x = a.in[0].data, *w = a.in[1].data;
      return library.run(b.stream(), neap::detail::product_of(plan, element, x, w, a.out[0].data), x, w, a.out[0].data,
                         neap::detail::library_epilogue(op, a), b.scratch(library.scratch_bytes()));
    }
  if (op.keeps) {  // the bias may have an epilogue of its own
    auto const biased = a.out.last(1);
    run(b, matmul_epilogue::of(op.product(), epilogue::bias), {a.in, biased, a.workspace});
    return run(b, op.activation(element), {biased, a.out.first(1)});
  }
  auto const y = a.out.first(1);
  run(b, op.product(), {a.in.first(2), y, a.workspace});
  if (op.summed() < 0) {
    tensor_ref const in[]{y[0], a.in[2]};
    run(b, op.steps(element), {in, y});
  }
  if (op.has_sums())
    run(b, sum_to{a.out[1].dims}, {std::span(&op.summed_of<tensor_ref>(a.in, a.out), 1), a.out.last(1), a.workspace});
}

}  // namespace op

}}  // namespace neap::v0
