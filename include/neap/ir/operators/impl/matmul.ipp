// The bodies of <neap/ir/operators/matmul.hpp>.
#pragma once

#include <neap/ir/operators/matmul.hpp>

#include <neap/backend/kernels/matmul.hpp>
#include <neap/backend/rows.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC bool is_matrix(tensor_layout const& l) {
  int const r = l.type.rank();
  if (r < 2) return false;
  auto const rows = l.type.dims[r - 2], columns = l.type.dims[r - 1];
  auto const row = l.strides[r - 2], column = l.strides[r - 1];
  if (columns <= 1 ? rows <= 1 || row == 1 || row >= columns : column == 1 && (rows <= 1 || row >= columns))
    return true;
  return rows <= 1 ? columns <= 1 || column >= rows : row == 1 && (columns <= 1 || column >= rows);
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void matmul::infer(shape_context& c) const {
  c.require_arity(2, 2);
  auto const &a = c.in(0), &b = c.in(1);
  c.require(a.rank() >= 2 && b.rank() >= 2, "needs two axes or more, got ", a.dims, " x ", b.dims);
  detail::require_same_element(c, 0, 1);
  detail::require_floating(c, 0);
  c.require(a.extent(transpose_a ? -2 : -1) == b.extent(transpose_b ? -1 : -2), "inner extents differ, ", a.dims,
            transpose_a ? " transposed" : "", " x ", b.dims, transpose_b ? " transposed" : "");
  for (int i : {0, 1})
    c.require(detail::is_matrix(c.layout(i)), "rows or columns of input ", i, " must be dense, got ", c.in(i),
              " with strides ", c.layout(i).strides);
  int const rank = std::max(a.rank(), b.rank());
  shape dims = extents::filled(rank, 1);
  for (auto const* t : {&a, &b})
    for (int k = 0; k < t->rank() - 2; ++k) {
      auto& d = dims[rank - t->rank() + k];
      auto const n = t->dims[k];
      c.require(d == n || d == 1 || n == 1, "batch extents do not broadcast, ", a.dims, " x ", b.dims);
      d = d == 1 ? n : d;
    }
  dims[rank - 2] = a.extent(transpose_a ? -1 : -2);
  dims[rank - 1] = b.extent(transpose_b ? -2 : -1);
  c.fresh(tensor_type{a.element, dims});
}

NEAP_FUNC void matmul::relate(dim_context& c) const {
  relate_result(c, 0);
  relate_sums(c);
}

NEAP_FUNC void matmul::relate_result(dim_context& c, int j) const {
  int const rank = c.out(j).rank(), ra = c.in(0).rank(), rb = c.in(1).rank();
  for (int i : {0, 1})
    for (int k = 0, r = c.in(i).rank(); k < r - 2; ++k)
      if (c.in(i).dims[k] == c.out(j).dims[rank - r + k]) c.same(i, k, j, rank - r + k);
  c.same(0, transpose_a ? ra - 1 : ra - 2, j, rank - 2);
  c.same(1, transpose_b ? rb - 2 : rb - 1, j, rank - 1);
}

NEAP_FUNC void matmul::relate_sums(dim_context& c) const {
  int const ra = c.in(0).rank(), rb = c.in(1).rank();
  c.reduced(0, transpose_a ? ra - 2 : ra - 1, 0);
  c.reduced(1, transpose_b ? rb - 1 : rb - 2, 0);
}

NEAP_FUNC work matmul::cost(work_context const& c) const {
  auto w = detail::streaming_work(c, 0);
  w.flops = 2.0 * static_cast<double>(c.out[0].type.count()) *
            static_cast<double>(c.in[0].type.extent(transpose_a ? -2 : -1));
  return w;
}

NEAP_FUNC bytes_t matmul::workspace(work_context const& c) const {
  return neap::matmul_workspace(detail::unplaced(c.in[0]), detail::unplaced(c.in[1]), detail::unplaced(c.out[0]),
                                {transpose_a, transpose_b, false});
}

NEAP_FUNC void matmul::gradient(gradient_context& c) const {
  value_id const a = c.in(0), b = c.in(1), g = detail::matrix(c, c.grad());
  auto const &da = c.type(a).dims, &db = c.type(b).dims;
  if (c.wants(0)) {
    value_id const ga =
        transpose_a ? c.emit(matmul{transpose_b, true}, {b, g}) : c.emit(matmul{false, !transpose_b}, {g, b});
    c.give(0, reduced_to(c, ga, da));
  }
  if (!c.wants(1)) return;
  value_id left = a, right = g;
  if (db.rank() == 2 && da.rank() > 2 && !transpose_a) {  // one product over all rows instead of a batch and its sum
    auto const rows = neap::detail::row_count(da);
    left = c.emit(reshape{{rows, da.back()}}, {dense(c, a)});
    right = c.emit(reshape{{rows, c.type(g).dims.back()}}, {dense(c, g)});
  }
  value_id const gb = transpose_b ? c.emit(matmul{true, transpose_a}, {right, left})
                                  : c.emit(matmul{!transpose_a, false}, {left, right});
  c.give(1, reduced_to(c, gb, db));
}

}}}  // namespace neap::v0::op
