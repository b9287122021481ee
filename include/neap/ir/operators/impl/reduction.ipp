// The bodies of <neap/ir/operators/reduction.hpp>.
#pragma once

#include <neap/ir/operators/reduction.hpp>

#include <neap/backend/kernels/reduce.hpp>
#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC reduced_axes::reduced_axes(extents const& axes, int rank) {
  for (auto k : axes) at[plain_axis(k, rank)] = true;
  for (int k = 0; k < rank; ++k)
    if (at[k] = at[k] || axes.empty(); at[k]) list[count++] = k;
}

NEAP_FUNC shape reduced_axes::kept(shape const& x, bool keepdim) const {
  shape dims;
  for (int k = 0; k < x.rank(); ++k)
    if (!at[k]) dims.push_back(x[k]);
    else if (keepdim) dims.push_back(1);
  return dims;
}

NEAP_FUNC void infer_reduction(shape_context& c, extents const& axes, bool keepdim, combine how) {
  c.require_arity(1, 1);
  auto element = c.in(0).element;
  c.require(how != combine::mean || is_floating(element), "the mean of integers is none, got ", c.in(0),
            ": cast it to a floating type first");
  if (how == combine::sum && !is_floating(element)) element = dtype::i64;
  unsigned seen = 0;
  for (auto k : axes) {
    unsigned const bit = 1u << require_axis(c, 0, k);
    c.require(!(seen & bit), "axis ", k, " is named twice in ", axes);
    seen |= bit;
  }
  c.fresh(tensor_type{element, reduced_axes(axes, c.in(0).rank()).kept(c.in(0).dims, keepdim)});
}

NEAP_FUNC void relate_reduction(dim_context& c, extents const& axes, bool keepdim, combine how) {
  reduced_axes const r(axes, c.in(0).rank());
  for (int k = 0, j = 0, n = 0; k < c.in(0).rank(); ++k) {
    if (r.at[k]) c.reduced(0, k, n++, how);
    else c.same(0, k, 0, j);
    j += !r.at[k] || keepdim;
  }
}

NEAP_FUNC work reduction_work(work_context const& c) {
  work w = streaming_work(c, 0);
  w.flops = static_cast<double>(c.in[0].type.count());
  return w;
}

NEAP_FUNC bytes_t reduction_workspace(work_context const& c, extents const& axes) {
  return neap::reduce_workspace(c.in[0].type, c.out[0].type.element, reduced_axes(axes, c.in[0].type.rank()).span());
}

NEAP_FUNC value_id with_kept_axes(gradient_context& c, value_id v, extents const& axes, bool keepdim) {
  if (keepdim) return v;
  auto const& x = c.type(c.in(0)).dims;
  return c.emit(reshape{reduced_axes(axes, x.rank()).kept(x, true)}, {dense(c, v)});
}

NEAP_FUNC void extremum_gradient(gradient_context& c, extents const& axes, bool keepdim) {
  auto const element = c.type(c.in(0)).element;
  value_id const y = with_kept_axes(c, c.out(0), axes, keepdim), g = with_kept_axes(c, c.grad(), axes, keepdim);
  value_id const equals = c.emit(equal{}, {c.in(0), y}), hit = c.emit(cast{element}, {equals});
  extents all;
  reduced_axes const r(axes, c.type(c.in(0)).rank());
  for (int k : r.span()) all.push_back(k);
  if (all.empty()) return c.give(0, g);  // a scalar
  auto const full = computed_in(element);
  value_id count = c.emit(sum{all, true}, {full == element ? hit : equals});  // of bf16 and f16 a whole number
  count = in_element(c, count, full);
  value_id const share = c.emit(div{}, {in_element(c, g, full), count});
  c.give(0, c.emit(mul{}, {hit, in_element(c, share, element)}));
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void arg_max::infer(shape_context& c) const {
  c.require_arity(1, 1);
  int const k = detail::require_axis(c, 0, axis);
  shape dims = c.in(0).dims;
  c.require(dims[k] > 0, "axis ", k, " of ", c.in(0), " has no elements");
  dims.erase(k);
  c.fresh(tensor_type{dtype::i64, dims});
}

NEAP_FUNC void arg_max::relate(dim_context& c) const {
  int const k = detail::plain_axis(axis, c.in(0).rank());
  for (int i = 0; i < c.in(0).rank(); ++i)
    if (i != k) c.same(0, i, 0, i < k ? i : i - 1);
}

NEAP_FUNC void cumsum::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_axis(c, 0, axis);
  auto const& x = c.in(0);
  c.fresh(tensor_type{is_floating(x.element) ? x.element : dtype::i64, x.dims});
}

NEAP_FUNC void cumsum::relate(dim_context& c) const {
  int const k = detail::plain_axis(axis, c.in(0).rank());
  for (int i = 0; i < c.in(0).rank(); ++i)
    if (i != k) c.same(0, i, 0, i);
}

}}}  // namespace neap::v0::op
