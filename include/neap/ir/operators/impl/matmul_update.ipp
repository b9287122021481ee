// The bodies of <neap/ir/operators/matmul_update.hpp>.
#pragma once

#include <neap/ir/operators/matmul_update.hpp>

#include <neap/backend/kernels/matmul.hpp>
#include <neap/core/element.hpp>
#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC gemm_shape weight_product::shape_of(tensor_layout const& a, tensor_layout const& b) const {
  return {a.type.extent(transpose_a ? -1 : -2), b.type.extent(transpose_b ? -2 : -1),
          a.type.extent(transpose_a ? -2 : -1), transpose_a, transpose_b};
}

NEAP_FUNC tensor_layout weight_product::infer(shape_context& c) const {
  c.require(parts >= 1, "parts must be at least 1, is ", parts);
  for (int i : {1, 2}) c.require(c.in(i).rank() == 2, "the gradient is a product of matrices, got ", c.in(i));
  tensor_layout const operands[] = {c.layout(1), c.layout(2)};
  shape_context product("matmul", operands);
  matmul{transpose_a, transpose_b}.infer(product);
  return product.outputs()[0].layout;
}

NEAP_FUNC bytes_t weight_product::workspace(work_context const& c) const {
  auto const s = shape_of(c.in[1], c.in[2]);
  auto const element = c.in[1].type.element;
  return part_bytes(s, cut_of(s, element), element) + (is_low(element) ? 0 : gemm_workspace(s, element));
}

NEAP_FUNC void weight_product::make_on_host(host_backend& backend, kernel_arguments const& a, gemm_shape const& s,
                                            gemm_parts const& cut, std::int64_t i) const {
  auto const element = a.in[1].element;
  auto* const rest = static_cast<std::byte*>(a.workspace) + part_bytes(s, cut, element);
  with_floating(element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto const *const left = a.in[1].as<T const>(), *const right = a.in[2].as<T const>();
    auto* const to = static_cast<T*>(a.workspace);
    if constexpr (sizeof(T) == 2) low_gemm_part(backend, s, cut, i, left, right, to);
    else gemm_part(backend, s, cut, i, left, right, to, rest);
  });
}

NEAP_FUNC gemm_parts weight_product::cut_of(gemm_shape const& s, dtype element) const {
  return is_low(element) ? low_gemm_parts(s, parts) : gemm_parts::of(s, parts);
}

NEAP_FUNC bytes_t weight_product::part_bytes(gemm_shape const& s, gemm_parts const& cut, dtype element) {
  return align_up((cut.rows ? s.n : s.m) * cut.length * size_of(element), 64);
}

NEAP_FUNC tensor_ref weight_product::dense_gradient(kernel_arguments const& a) {
  auto const& dims = a.in[0].dims;
  return {a.workspace, a.in[1].element, dims, dense_strides(dims)};
}

}  // namespace detail
}}}  // namespace neap::v0::op
