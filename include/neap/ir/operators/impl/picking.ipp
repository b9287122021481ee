// The bodies of <neap/ir/operators/picking.hpp>.
#pragma once

#include <neap/ir/operators/picking.hpp>

#include <neap/backend/kernels/embedding.hpp>
#include <neap/backend/kernels/gather.hpp>
#include <neap/backend/kernels/topk.hpp>
#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC void require_places(shape_context& c, int i) {
  c.require(c.in(i).element == dtype::i64, "numbers must be i64, got ", c.in(i), ": cast them");
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void embedding_grad::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_floating(c, 0);
  detail::require_places(c, 1);
  detail::require_rank(c, 0, 1, "the gradient");
  shape expected = c.in(1).dims;
  expected.push_back(c.in(0).dims.back());
  detail::require_dims(c, 0, expected, "the gradient");
  detail::require_dense_rows(c, 0), detail::require_dense(c, 1);
  c.fresh(tensor_type{c.in(0).element, {rows, c.in(0).dims.back()}});
}

NEAP_FUNC void embedding_grad::relate(dim_context& c) const {
  for (int k = 0; k < c.in(1).rank(); ++k) c.reduced(0, k, k), c.reduced(1, k, k);
  c.same(0, c.in(0).rank() - 1, 0, 1);
}

NEAP_FUNC bytes_t embedding_grad::workspace(work_context const& c) const {
  return neap::embedding_backward_workspace(rows, c.in[1].type.count());
}

NEAP_FUNC void embedding::infer(shape_context& c) const {
  c.require_arity(2, 2);
  c.require(c.in(0).rank() == 2, "the table needs two axes, got ", c.in(0));
  detail::require_places(c, 1);
  detail::require_dense_rows(c, 0), detail::require_dense(c, 1);
  tensor_type t{c.in(0).element, c.in(1).dims};
  t.dims.push_back(c.in(0).dims[1]);
  c.fresh(t);
}

NEAP_FUNC void embedding::relate(dim_context& c) const {
  for (int k = 0; k < c.in(1).rank(); ++k) c.same(1, k, 0, k);
  c.same(0, 1, 0, c.in(1).rank());
}

NEAP_FUNC work embedding::cost(work_context const& c) const {  // it reads only the rows that are picked
  double const n = detail::touched_bytes(c.out[0]);
  return {0, n + detail::touched_bytes(c.in[1]), n};
}

NEAP_FUNC void embedding::gradient(gradient_context& c) const {
  if (c.wants(0)) c.give(0, c.emit(embedding_grad{c.type(c.in(0)).dims[0]}, {dense_rows(c, c.grad()), c.in(1)}));
}

NEAP_FUNC void embedding_grad::gradient(gradient_context& c) const {
  if (c.wants(0)) c.give(0, c.emit(embedding{}, {dense_rows(c, c.grad()), c.in(1)}));
}

NEAP_FUNC void gather::infer(shape_context& c) const {
  c.require_arity(2, 2);
  int const k = detail::require_axis(c, 0, axis);
  detail::require_places(c, 1);
  bool fits = c.in(0).rank() == c.in(1).rank();
  for (int i = 0; fits && i < c.in(0).rank(); ++i) fits = i == k || c.in(0).dims[i] == c.in(1).dims[i];
  c.require(fits, "index ", c.in(1).dims, " and input ", c.in(0).dims, " differ outside axis ", k);
  c.fresh(tensor_type{c.in(0).element, c.in(1).dims});
}

NEAP_FUNC void gather::relate(dim_context& c) const {
  int const k = detail::plain_axis(axis, c.in(0).rank());
  for (int i = 0; i < c.in(0).rank(); ++i) {
    if (i != k) c.same(0, i, 0, i);
    c.same(1, i, 0, i);
  }
}

NEAP_FUNC void scatter_add::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_floating(c, 0);
  int const k = detail::require_axis(c, 0, axis);
  detail::require_places(c, 1);
  c.require(c.in(0).dims == c.in(1).dims, "index ", c.in(1).dims, " and input ", c.in(0).dims, " differ");
  tensor_type t = c.in(0);
  t.dims[k] = extent;
  c.fresh(t);
}

NEAP_FUNC void scatter_add::relate(dim_context& c) const {
  int const k = detail::plain_axis(axis, c.in(0).rank());
  for (int i = 0; i < c.in(0).rank(); ++i)
    for (int j : {0, 1})
      if (i != k) c.same(j, i, 0, i);
      else c.reduced(j, i, 0);
}

NEAP_FUNC bytes_t scatter_add::workspace(work_context const& c) const {
  return neap::numbered_sums_workspace(c.out[0].type, terms(c.in[1].type.dims));
}

NEAP_FUNC void scatter_add::gradient(gradient_context& c) const {
  if (c.wants(0)) c.give(0, c.emit(gather{axis}, {c.grad(), c.in(1)}));
}

NEAP_FUNC void gather::gradient(gradient_context& c) const {
  auto const dims = c.type(c.in(0)).dims;
  if (c.wants(0))
    c.give(0, c.emit(scatter_add{axis, dims[detail::plain_axis(axis, dims.rank())]}, {c.grad(), c.in(1)}));
}

}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC int require_numbers(shape_context& c, std::int64_t axis) {
  int const k = require_axis(c, 0, axis);
  require_places(c, 1);
  c.require(c.in(1).rank() == 1, "the numbers must have one axis, got ", c.in(1));
  return k;
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void index_select::infer(shape_context& c) const {
  c.require_arity(2, 2);
  tensor_type t = c.in(0);
  t.dims[detail::require_numbers(c, axis)] = c.in(1).dims[0];
  c.fresh(t);
}

NEAP_FUNC void index_select::relate(dim_context& c) const {
  int const k = detail::plain_axis(axis, c.in(0).rank());
  for (int i = 0; i < c.in(0).rank(); ++i)
    if (i != k) c.same(0, i, 0, i);
  c.same(1, 0, 0, k);
}

NEAP_FUNC work index_select::cost(work_context const& c) const {  // it reads only what is picked
  double const n = detail::touched_bytes(c.out[0]);
  return {0, n + detail::touched_bytes(c.in[1]), n};
}

NEAP_FUNC void index_add::infer(shape_context& c) const {
  c.require_arity(3, 3);
  shape dims = c.in(0).dims;
  dims[detail::require_numbers(c, axis)] = c.in(1).dims[0];
  detail::require_same_element(c, 0, 2);
  detail::require_dims(c, 2, dims, "what is added");
  c.fresh(c.in(0));
}

NEAP_FUNC void index_add::relate(dim_context& c) const {
  int const k = detail::plain_axis(axis, c.in(0).rank());
  for (int i = 0; i < c.in(0).rank(); ++i)
    if (i != k) c.same(0, i, 0, i), c.same(2, i, 0, i);
}

NEAP_FUNC work index_add::cost(work_context const& c) const {
  work w = detail::streaming_work(c, 0);
  w.flops = static_cast<double>(c.in[2].type.count());
  return w;
}

NEAP_FUNC bytes_t index_add::workspace(work_context const& c) const {
  return neap::numbered_sums_workspace(c.out[0].type, c.in[1].type.count());
}

NEAP_FUNC void index_add::gradient(gradient_context& c) const {
  if (c.wants(0)) c.give(0, c.grad());
  if (c.wants(2)) c.give(2, c.emit(index_select{axis}, {c.grad(), c.in(1)}));
}

NEAP_FUNC void index_select::gradient(gradient_context& c) const {
  auto const x = c.type(c.in(0));
  if (!c.wants(0)) return;
  value_id const zeros = c.emit(broadcast_to{x.dims}, {c.emit(fill{{}, x.element, 0}, {})});
  c.give(0, c.emit(index_add{axis}, {zeros, c.in(1), c.grad()}));
}

NEAP_FUNC void one_hot::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_places(c, 0);
  detail::require_dense(c, 0);
  c.require(classes >= 0, "needs a number of classes, got ", classes);
  c.require(c.in(0).rank() < max_rank, "one axis more than ", c.in(0), " has is too many");
  tensor_type t{element, c.in(0).dims};
  t.dims.push_back(classes);
  c.fresh(t);
}

NEAP_FUNC void one_hot::relate(dim_context& c) const {
  for (int k = 0; k < c.in(0).rank(); ++k) c.same(0, k, 0, k);
}

NEAP_FUNC void topk::infer(shape_context& c) const {
  c.require_arity(1, 1);
  tensor_type t = c.in(0);
  int const at = detail::require_axis(c, 0, axis);
  c.require(k >= 0 && k <= t.dims[at], "axis ", at, " of ", t, " has no ", k, " elements");
  t.dims[at] = k;
  c.fresh(t);
  c.fresh(tensor_type{dtype::i64, t.dims});
}

NEAP_FUNC void topk::relate(dim_context& c) const {
  int const at = detail::plain_axis(axis, c.in(0).rank());
  for (int i = 0; i < c.in(0).rank(); ++i)
    for (int j : {0, 1})
      if (i != at) c.same(0, i, j, i);
}

NEAP_FUNC work topk::cost(work_context const& c) const {
  work w = detail::streaming_work(c, 0);
  w.flops = flops * static_cast<double>(c.in[0].type.count());
  return w;
}

NEAP_FUNC bytes_t topk::workspace(work_context const& c) const {
  return neap::topk_workspace(c.in[0].type.dims, k, detail::plain_axis(axis, c.in[0].type.rank()));
}

NEAP_FUNC void topk::gradient(gradient_context& c) const {
  auto const dims = c.type(c.in(0)).dims;
  c.give(0, c.emit(scatter_add{axis, dims[detail::plain_axis(axis, dims.rank())]}, {c.grad(), c.out(1)}));
}

}}}  // namespace neap::v0::op
