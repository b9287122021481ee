// The bodies of <neap/ir/operators/matmul_epilogue.hpp>.
#pragma once

#include <neap/ir/operators/matmul_epilogue.hpp>

#include <neap/backend/kernels/reduce.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC matmul_epilogue matmul_epilogue::of(matmul const& m, epilogue e, bool keeps) {
  return {m.transpose_a, m.transpose_b, static_cast<std::int64_t>(e), keeps};
}

NEAP_FUNC fused matmul_epilogue::steps(dtype element) const {
  fused_maker make(2);
  if (is_gelu_gradient()) make.add(gelu_grad{true}, element, {0, 1});
  else if (auto const sum = *make.add(add{}, element, {0, 1}); has_activation()) add_activation(make, element, sum);
  return make.made();
}

NEAP_FUNC fused matmul_epilogue::activation(dtype element) const {
  fused_maker make(1);
  add_activation(make, element, 0);
  return make.made();
}

NEAP_FUNC void matmul_epilogue::infer(shape_context& c) const {
  c.require(kind >= 0 && kind <= static_cast<std::int64_t>(epilogue::gelu_grad_sums), "there is no epilogue ", kind);
  c.require(!keeps || has_activation(), "keeps what its activation reads, and has none");
  int const sums = summed(), arity = sums < 0 ? 3 : 2;
  c.require_arity(arity, arity);
  shape_context inner(name, c.inputs().first(2));
  product().infer(inner);
  auto const y = inner.outputs()[0].layout.type;
  if (sums >= 0) {
    c.require(c.in(0).rank() == 2 && c.in(1).rank() == 2, "sums need operands of two axes, got ", c.in(0).dims, " x ",
              c.in(1).dims);
    c.require(sums == 0 ? transpose_a : !transpose_b, "sums are over the first axis, which of input ", sums,
              " is not the inner one");
  } else if (is_gelu_gradient()) {
    c.require(c.in(2) == y, "types differ, ", c.in(2), " and ", y);
  } else {
    detail::require_same_element(c, 0, 2);
    detail::require_dims(c, 2, {y.dims.back()}, "the bias");
  }
  c.fresh(y);
  if (keeps) c.fresh(y);
  if (sums >= 0) c.fresh(tensor_type{y.element, {c.in(sums).dims[1]}});
  else if (has_sums()) c.fresh(tensor_type{y.element, {y.dims.back()}});
}

NEAP_FUNC void matmul_epilogue::relate(dim_context& c) const {
  int const sums = summed();
  if (sums >= 0) {  // the other operand's rows or columns are not cut: each part would have all sums
    c.same(sums, 1, 0, sums);
    c.same(sums, 1, 1, 0);
    return product().relate_sums(c);
  }
  if (has_sums()) {  // rows may be cut, too: their sums are added
    product().relate_result(c, 0);
    c.aligned(2, 0);
    int const rank = c.out(0).rank(), ra = c.in(0).rank(), rb = c.in(1).rank();
    for (int k = 0; k < rank - 1; ++k) c.reduced(2, k, k);
    for (int i : {0, 1})
      for (int k = 0, r = c.in(i).rank(); k < r - 2; ++k)
        if (c.in(i).dims[k] == c.out(0).dims[rank - r + k]) c.reduced(i, k, rank - r + k);
    c.reduced(0, transpose_a ? ra - 1 : ra - 2, rank - 2);
    c.same(1, transpose_b ? rb - 2 : rb - 1, 1, 0), c.same(2, rank - 1, 1, 0);
    return;
  }
  for (int j = 0; j < (keeps ? 2 : 1); ++j) {
    product().relate_result(c, j);
    c.aligned(2, j);
  }
}

NEAP_FUNC work matmul_epilogue::cost(work_context const& c) const {
  auto w = detail::streaming_work(c, 0);
  auto const count = static_cast<double>(c.out[0].type.count());
  w.flops = 2.0 * count * static_cast<double>(c.in[0].type.extent(transpose_a ? -2 : -1));
  if (int const sums = summed(); sums >= 0)
    w.flops += static_cast<double>(c.in[static_cast<std::size_t>(sums)].type.count());
  else
    steps(c.out[0].type.element)
        .for_each_step(
            [&](int, fused_step const&, detail::step_operator const& f, void const*) { w.flops += count * f.flops; });
  if (follows() == epilogue::gelu_grad_sums) w.flops += count;
  return w;
}

NEAP_FUNC bytes_t matmul_epilogue::workspace(work_context const& c) const {
  bytes_t const of_product = product().workspace(c);
  if (!has_sums()) return of_product;
  return std::max(of_product, neap::sum_to_shape_workspace(summed_of(c.in, c.out).type, c.out[1].type));
}

NEAP_FUNC void matmul_epilogue::add_activation(fused_maker& make, dtype element, int of) const {
  if (follows() == epilogue::bias_relu) make.add(relu{}, element, {of});
  else make.add(gelu{true}, element, {of});
}

}  // namespace op
}}  // namespace neap::v0
