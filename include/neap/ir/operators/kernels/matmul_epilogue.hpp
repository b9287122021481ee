// The kernels of <neap/ir/operators/matmul_epilogue.hpp>.
#pragma once

#include <neap/ir/operators/matmul_epilogue.hpp>

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/kernels/matmul.hpp>
#include <neap/backend/kernels/reduce.hpp>
#include <neap/ir/operators/kernels/fused.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
/// The steps in chunks that stay in the first cache: where what the activation reads is kept, it is written in one and the
/// activation reads it there.
template <class C>
void run_epilogue(host_backend& b, matmul_epilogue const& op, kernel_arguments const& a, tensor_ref const& product) {
  dtype const element = product.element;
  tensor_ref const in[]{product, a.in[2]};
  if (!op.keeps)
    return b.parallel_for(product.count(), neap::detail::map_grain,
                          fused_run<C>(op.steps(element), {in, a.out.first(1)}));
  auto const biased = matmul_epilogue::of(op.product(), epilogue::bias).steps(element);
  fused_run<C> const sum(biased, {in, a.out.last(1)}), bent(op.activation(element), {a.out.last(1), a.out.first(1)});
  b.parallel_for(product.count(), neap::detail::map_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += neap::detail::map_chunk) {
      auto const until = std::min(end, i + neap::detail::map_chunk);
      sum(i, until);
      bent(i, until);
    }
  });
}
}  // namespace detail

template <std::same_as<host_backend> Backend>
void run(Backend& b, matmul_epilogue const& op, kernel_arguments const& a) {
  auto const& product = a.out[op.keeps ? 1 : 0];
  neap::matmul(b, a.in[0], a.in[1], product, {op.transpose_a, op.transpose_b, false}, a.workspace);
  if (op.summed() < 0) {
    if (product.element == dtype::f64) detail::run_epilogue<double>(b, op, a, product);
    else detail::run_epilogue<float>(b, op, a, product);
  }
  if (op.has_sums()) neap::sum_to_shape(b, a.out[1], op.summed_of<tensor_ref>(a.in, a.out), a.workspace);
}

}}}  // namespace neap::v0::op
