// The bodies of <neap/ir/operators/movement.hpp>.
#pragma once

#include <neap/ir/operators/movement.hpp>

#include <neap/backend/kernels/reduce.hpp>
#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void copy::infer(shape_context& c) const {
  c.require_arity(1, 1);
  c.fresh(c.in(0));
}

NEAP_FUNC value_id dense(op_emitter& to, value_id v) {
  if (to.layout_of(v).is_dense()) return v;
  return to.emit(view_of(copy{}), span_of(&v, 1)).front();
}

NEAP_FUNC void cast::infer(shape_context& c) const {
  c.require_arity(1, 1);
  c.fresh(tensor_type{to, c.in(0).dims});
}

NEAP_FUNC void cast::gradient(gradient_context& c) const {
  auto const from = c.type(c.in(0)).element;
  if (is_floating(from) && is_floating(to)) c.give(0, detail::in_element(c, c.grad(), from));
}

namespace detail {
NEAP_FUNC value_id in_element(gradient_context& c, value_id v, dtype t) {
  return c.type(v).element == t ? v : c.emit(cast{t}, {v});
}
}  // namespace detail

NEAP_FUNC void fill::infer(shape_context& c) const {
  c.require_arity(0, 0);
  for (auto n : dims) c.require(n >= 0, "negative extent in ", dims);
  c.fresh(tensor_type{element, dims});
}

}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC plain_vector<dim_link> reshape_links(extents const& a, extents const& b) {
  plain_vector<dim_link> links;
  each_reshaped_axis(a, b, [&](int i, int j) {
    links.push_back({0, static_cast<std::int16_t>(i), 0, static_cast<std::int16_t>(j), combine::concat});
  });
  return links;
}

NEAP_FUNC bool relates_as_reshape(std::span<dim_link const> links, extents const& a, extents const& b) {
  auto const same = [](dim_link const& x, dim_link const& y) {
    return x.input == y.input && x.in_axis == y.in_axis && x.output == y.output && x.out_axis == y.out_axis &&
           x.how == y.how;
  };
  auto const of_reshape = reshape_links(a, b);
  return std::equal(links.begin(), links.end(), of_reshape.begin(), of_reshape.end(), same);
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void reshape::infer(shape_context& c) const {
  c.require_arity(1, 1);
  c.require(c.in(0).count() == elements(dims), "from ", c.in(0).dims, " to ", dims, ": element counts differ");
  detail::require_dense(c, 0);
  c.view(0, {{c.in(0).element, dims}, dense_strides(dims), c.layout(0).offset});
}

NEAP_FUNC void reshape::relate(dim_context& c) const {
  detail::each_reshaped_axis(c.in(0).dims, c.out(0).dims, [&](int i, int j) { c.same(0, i, 0, j); });
}

NEAP_FUNC void permute::infer(shape_context& c) const {
  c.require_arity(1, 1);
  auto const& x = c.layout(0);
  c.require(axes.rank() == x.type.rank(), axes, " does not order the axes of ", x.type);
  tensor_layout l{{x.type.element, {}}, {}, x.offset};
  unsigned seen = 0;
  for (auto k : axes) {
    c.require(k >= 0 && k < x.type.rank() && !(seen >> k & 1u), axes, " does not order the axes of ", x.type);
    seen |= 1u << k;
    l.type.dims.push_back(x.type.dims[static_cast<int>(k)]);
    l.strides.push_back(x.strides[static_cast<int>(k)]);
  }
  c.view(0, l);
}

NEAP_FUNC void permute::relate(dim_context& c) const {
  for (int k = 0; k < axes.rank(); ++k) c.same(0, static_cast<int>(axes[k]), 0, k);
}

NEAP_FUNC void permute::gradient(gradient_context& c) const {
  extents back = axes;
  for (int k = 0; k < axes.rank(); ++k) back[static_cast<int>(axes[k])] = k;
  c.give(0, c.emit(permute{back}, {c.grad()}));
}

NEAP_FUNC void pad::infer(shape_context& c) const {
  c.require_arity(1, 1);
  int const k = detail::require_axis(c, 0, axis);
  c.require(before >= 0 && after >= 0, "cannot pad by ", before, " and ", after);
  tensor_type t = c.in(0);
  t.dims[k] = checked_add(t.dims[k], checked_add(before, after));
  c.fresh(t);
}

NEAP_FUNC void slice::infer(shape_context& c) const {
  c.require_arity(1, 1);
  int const k = detail::require_axis(c, 0, axis);
  c.require(start >= 0 && start <= stop && stop <= c.in(0).dims[k], "no part ", start, " to ", stop, " of axis ", k,
            " in ", c.in(0));
  auto l = c.layout(0);
  l.offset += start * l.strides[k];
  l.type.dims[k] = stop - start;
  c.view(0, l);
}

NEAP_FUNC void slice::relate(dim_context& c) const {
  int const k = detail::plain_axis(axis, c.in(0).rank());
  for (int i = 0; i < c.in(0).rank(); ++i)
    if (i != k) c.same(0, i, 0, i);
}

NEAP_FUNC void slice::gradient(gradient_context& c) const {
  auto const dims = c.type(c.in(0)).dims;
  int const k = detail::plain_axis(axis, dims.rank());
  c.give(0, c.emit(pad{k, start, dims[k] - stop}, {c.grad()}));
}

NEAP_FUNC void pad::relate(dim_context& c) const {
  int const k = detail::plain_axis(axis, c.in(0).rank());
  for (int i = 0; i < c.in(0).rank(); ++i)
    if (i != k) c.same(0, i, 0, i);
}

NEAP_FUNC void pad::gradient(gradient_context& c) const {
  auto const dims = c.type(c.in(0)).dims;
  int const k = detail::plain_axis(axis, dims.rank());
  c.give(0, c.emit(slice{k, before, before + dims[k]}, {c.grad()}));
}

NEAP_FUNC void concat::infer(shape_context& c) const {
  c.require(c.arity() >= 1, "needs at least one input");
  int const k = detail::require_axis(c, 0, axis);
  tensor_type t = c.in(0);
  for (int i = 1; i < c.arity(); ++i) {
    detail::require_same_element(c, 0, i);
    bool fits = c.in(i).rank() == t.rank();
    for (int j = 0; fits && j < t.rank(); ++j) fits = j == k || c.in(i).dims[j] == t.dims[j];
    c.require(fits, "shapes differ outside axis ", k, ", ", c.in(0).dims, " and ", c.in(i).dims);
    t.dims[k] = checked_add(t.dims[k], c.in(i).dims[k]);
  }
  c.fresh(t);
}

NEAP_FUNC void concat::relate(dim_context& c) const {
  int const k = detail::plain_axis(axis, c.in(0).rank());
  for (int i = 0; i < c.arity(); ++i)
    for (int j = 0; j < c.in(0).rank(); ++j)
      if (j != k) c.same(i, j, 0, j);
}

NEAP_FUNC void concat::gradient(gradient_context& c) const {
  std::int64_t at = 0;
  for (int i = 0; i < c.arity(); ++i) {
    auto const dims = c.type(c.in(i)).dims;
    int const k = detail::plain_axis(axis, dims.rank());
    if (c.wants(i)) c.give(i, c.emit(slice{k, at, at + dims[k]}, {c.grad()}));
    at += dims[k];
  }
}

NEAP_FUNC void sum_to::infer(shape_context& c) const {
  c.require_arity(1, 1);
  auto const& x = c.in(0).dims;
  int const missing = x.rank() - dims.rank();
  bool fits = missing >= 0;
  for (int k = 0; fits && k < dims.rank(); ++k) fits = dims[k] == x[missing + k] || dims[k] == 1;
  c.require(fits, dims, " does not broadcast to ", x);
  c.fresh(tensor_type{c.in(0).element, dims});
}

NEAP_FUNC void sum_to::relate(dim_context& c) const {
  int const missing = c.in(0).rank() - dims.rank();
  int reduced = 0;
  for (int k = 0; k < c.in(0).rank(); ++k)
    if (k >= missing && c.out(0).dims[k - missing] == c.in(0).dims[k]) c.same(0, k, 0, k - missing);
    else c.reduced(0, k, reduced++);
}

NEAP_FUNC work sum_to::cost(work_context const& c) const {
  work w = detail::streaming_work(c, 0);
  w.flops = static_cast<double>(c.in[0].type.count());
  return w;
}

NEAP_FUNC void broadcast_to::infer(shape_context& c) const {
  c.require_arity(1, 1);
  auto const& x = c.layout(0);
  int const missing = dims.rank() - x.type.rank();
  c.require(missing >= 0, x.type.dims, " does not broadcast to ", dims);
  tensor_layout l{{x.type.element, dims}, extents::filled(dims.rank(), 0), x.offset};
  for (int k = missing; k < dims.rank(); ++k) {
    auto const n = x.type.dims[k - missing];
    c.require(n == dims[k] || n == 1, x.type.dims, " does not broadcast to ", dims);
    l.strides[k] = n == dims[k] ? x.strides[k - missing] : 0;
  }
  c.view(0, l);
}

NEAP_FUNC void sum_to::gradient(gradient_context& c) const {
  c.give(0, c.emit(broadcast_to{c.type(c.in(0)).dims}, {c.grad()}));
}

NEAP_FUNC value_id reduced_to(gradient_context& c, value_id g, shape const& dims) {
  return c.type(g).dims == dims ? g : c.emit(sum_to{dims}, {g});
}

NEAP_FUNC void triangle::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_rank(c, 0, 2, "x");
  c.fresh(c.in(0));
}

NEAP_FUNC void as_strided::infer(shape_context& c) const {
  c.require_arity(1, 1);
  c.require(dims.rank() == strides.rank() && offset >= 0, "no view of extents ", dims, ", strides ", strides,
            " and offset ", offset);
  c.view(0, {{c.in(0).element, dims}, strides, offset});
}

NEAP_FUNC bytes_t sum_to::workspace(work_context const& c) const {
  return neap::sum_to_shape_workspace(c.in[0].type, c.out[0].type);
}

}}}  // namespace neap::v0::op
