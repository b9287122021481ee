// The bodies of <neap/ir/operators/row_norm.hpp>.
#pragma once

#include <neap/ir/operators/row_norm.hpp>

#include <neap/backend/kernels/layer_norm.hpp>
#include <neap/backend/kernels/rms_norm.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC shape without_last(shape s) {
  if (s.rank()) s.erase(s.rank() - 1);
  return s;
}

NEAP_FUNC void require_vectors(shape_context& c, int first, std::int64_t n, std::string_view what) {
  for (int i = first; i < c.arity(); ++i) {
    require_dims(c, i, {n}, what);
    require_same_element(c, 0, i);
    require_dense(c, i);
  }
}

NEAP_FUNC void infer_row_norm(shape_context& c, int vectors, int statistics) {
  c.require_arity(1, 1 + vectors);
  require_floating(c, 0);
  require_rank(c, 0, 1, "the input");
  require_dense_rows(c, 0);
  require_vectors(c, 1, c.in(0).dims.back(), "scale and shift");
  c.fresh(c.in(0));
  for (int j = 0; j < statistics; ++j) c.fresh(tensor_type{computed_in(c.in(0).element), without_last(c.in(0).dims)});
}

NEAP_FUNC void infer_row_norm_grad(shape_context& c, int vectors, int statistics) {
  int const fixed = 2 + statistics;
  c.require_arity(fixed, fixed + 1);
  require_floating(c, 0);
  require_rank(c, 0, 1, "the gradient");
  require_same_type(c, 0, 1);
  for (int i : {0, 1}) require_dense_rows(c, i);
  for (int i = 2; i < fixed; ++i) {
    require_dims(c, i, without_last(c.in(1).dims), "a statistic");
    require_dense(c, i);
  }
  require_vectors(c, fixed, c.in(1).dims.back(), "scale");
  c.fresh(c.in(1));
  if (c.arity() > fixed)
    for (int j = 0; j < vectors; ++j) c.fresh(tensor_type{c.in(1).element, {c.in(1).dims.back()}});
}

NEAP_FUNC value_id along_rows(gradient_context& c, value_id v) {
  shape dims = c.type(v).dims;
  dims.push_back(1);
  return c.emit(reshape{dims}, {dense(c, v)});
}

NEAP_FUNC value_id with_statistics(gradient_context& c, value_id dx, int statistics, shape const& groups,
                                   shape const& each) {
  value_id const of_mean = statistics > 1 ? c.grad(1) : nothing<value_id>, of_rstd = c.grad(statistics);
  if (!c.wants(0) || (of_mean == nothing<value_id> && of_rstd == nothing<value_id>)) return dx;
  auto const x = c.type(c.in(0));
  auto const number = computed_in(x.element);
  auto const seen = [&](value_id v) { return c.emit(reshape{each}, {dense(c, v)}); };
  auto const count = [](shape const& s) { return static_cast<double>(std::max<std::int64_t>(1, elements(s))); };
  double const share = count(each) / count(groups);
  value_id more = nothing<value_id>;
  if (of_rstd != nothing<value_id>) {
    value_id const r = seen(c.out(statistics)), cube = c.emit(mul{}, {c.emit(square{}, {r}), r});
    value_id const slope = c.emit(mul_scalar{-share}, {c.emit(mul{}, {cube, seen(of_rstd)})});
    value_id h = in_element(c, groups == x.dims ? c.in(0) : c.emit(reshape{groups}, {c.in(0)}), number);
    if (statistics > 1) h = c.emit(sub{}, {h, seen(c.out(1))});
    more = c.emit(mul{}, {h, slope});
  }
  if (of_mean != nothing<value_id>) {
    value_id const part = c.emit(mul_scalar{share}, {seen(of_mean)});
    more = more == nothing<value_id> ? c.emit(broadcast_to{groups}, {part}) : c.emit(add{}, {more, part});
  }
  if (!(groups == x.dims)) more = c.emit(reshape{x.dims}, {dense(c, more)});
  more = in_element(c, more, x.element);
  return dx == nothing<value_id> ? more : c.emit(add{}, {dx, more});
}

NEAP_FUNC void norm_gradient(gradient_context& c, operator_view grad, int statistics, value_id g, shape const& groups,
                             shape const& each) {
  value_id dx = nothing<value_id>;
  if (g != nothing<value_id>) {
    std::vector<value_id> in{g, c.in(0)};
    for (int j = 1; j <= statistics; ++j) in.push_back(c.out(j));
    if (c.arity() > 1) in.push_back(c.in(1));
    auto const all = c.emit_all(grad, span_of(in));
    dx = all[0];
    for (int i = 1; i < c.arity(); ++i)
      if (c.wants(i)) c.give(i, all[static_cast<std::size_t>(i)]);
  }
  dx = with_statistics(c, dx, statistics, groups, each);
  if (c.wants(0)) c.give(0, dx);
}

NEAP_FUNC void row_norm_gradient(gradient_context& c, operator_view grad, int statistics) {
  value_id const g = c.grad();
  auto const x = c.type(c.in(0)).dims;
  shape each = x;
  each[each.rank() - 1] = 1;
  norm_gradient(c, grad, statistics, g == nothing<value_id> ? g : dense_rows(c, g), x, each);
}

NEAP_FUNC void relate_rows(dim_context& c, int inputs, int outputs) {
  int const rows = c.in(0).rank() - 1;
  for (int i = 0; i < inputs; ++i)
    for (int k = 0; k < rows; ++k) {
      for (int j = 0; j < outputs; ++j) c.same(i, k, j, k);
      if (outputs < c.output_count()) c.reduced(i, k, k);
    }
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC bytes_t layer_norm_grad::workspace(work_context const& c) const {
  return c.out.size() > 1 ? neap::layer_norm_backward_workspace(c.in[1].type) : 0;
}

NEAP_FUNC bytes_t rms_norm_grad::workspace(work_context const& c) const {
  return c.out.size() > 1 ? neap::rms_norm_backward_workspace(c.in[1].type) : 0;
}

}}}  // namespace neap::v0::op
