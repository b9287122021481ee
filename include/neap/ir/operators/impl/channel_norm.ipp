// The bodies of <neap/ir/operators/channel_norm.hpp>.
#pragma once

#include <neap/ir/operators/channel_norm.hpp>

#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/group_norm.hpp>
#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC void require_channels(shape_context& c, int i) {
  require_floating(c, i);
  c.require(c.in(i).rank() >= 2, "needs [N, C, ...], got ", c.in(i));
  require_dense(c, i);
}

NEAP_FUNC void relate_samples(dim_context& c, int inputs, int outputs) {
  for (int i = 0; i < inputs; ++i) {
    for (int j = 0; j < outputs; ++j) c.same(i, 0, j, 0);
    if (outputs < c.output_count()) c.reduced(i, 0, 0);
  }
}

NEAP_FUNC void relate_channels(dim_context& c) {
  for (int i = 0; i < c.arity(); ++i)
    for (int j = 0; j < c.output_count(); ++j) c.same(i, c.in(i).rank() > 1, j, c.out(j).rank() > 1);
}

NEAP_FUNC value_id along_channels(gradient_context& c, value_id v, int rank) {
  shape dims = extents::filled(rank - 1, 1);
  dims[0] = c.type(v).dims[0];
  return c.emit(reshape{dims}, {v});
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void batch_norm_grad::infer(shape_context& c) const {
  c.require_arity(4, 5);
  detail::require_channels(c, 0), detail::require_channels(c, 1);
  detail::require_same_type(c, 0, 1);
  for (int i : {2, 3}) detail::require_dims(c, i, {c.in(1).dims[1]}, "a statistic"), detail::require_dense(c, i);
  detail::require_vectors(c, 4, c.in(1).dims[1], "scale");
  c.fresh(c.in(1));
  for (int j = 0; c.arity() == 5 && j < 2; ++j) c.fresh(tensor_type{c.in(1).element, {c.in(1).dims[1]}});
}

NEAP_FUNC void batch_norm_relu_grad::infer(shape_context& c) const {
  c.require_arity(6, 6);
  detail::require_channels(c, 0), detail::require_channels(c, 1);
  detail::require_same_type(c, 0, 1);
  for (int i : {2, 3}) detail::require_dims(c, i, {c.in(1).dims[1]}, "a statistic"), detail::require_dense(c, i);
  detail::require_vectors(c, 4, c.in(1).dims[1], "scale and shift");
  c.fresh(c.in(1));
  for (int j = 0; j < 2; ++j) c.fresh(tensor_type{c.in(1).element, {c.in(1).dims[1]}});
  if (gives_result) c.fresh(c.in(1));
}

NEAP_FUNC void batch_norm::infer(shape_context& c) const {
  c.require_arity(1, 3);
  detail::require_channels(c, 0);
  detail::require_vectors(c, 1, c.in(0).dims[1], "scale and shift");
  c.fresh(c.in(0));
  for (int j = 0; j < 2; ++j) c.fresh(tensor_type{computed_in(c.in(0).element), {c.in(0).dims[1]}});
}

NEAP_FUNC void batch_norm::gradient(gradient_context& c) const {
  auto const x = c.type(c.in(0)).dims;
  shape each = extents::filled(x.rank() - 1, 1);
  each[0] = x[1];
  value_id const g = c.grad();
  detail::norm_gradient(c, view_of(batch_norm_grad{}), 2, g == nothing<value_id> ? g : dense(c, g), x, each);
}

NEAP_FUNC void batch_norm_update::infer(shape_context& c) const {
  c.require_arity(4, 4);
  c.require(count > 0, "the count must be positive, got ", count);
  for (int i = 0; i < 4; ++i) {
    detail::require_floating(c, i);
    detail::require_dims(c, i, c.in(0).dims, "a statistic");
  }
  c.update(0), c.update(1);
}

NEAP_FUNC void batch_norm_inference::infer(shape_context& c) const {
  c.require_arity(3, 5);
  detail::require_channels(c, 0);
  for (int i : {1, 2}) {
    c.require(c.in(i) == tensor_type{computed_in(c.in(0).element), {c.in(0).dims[1]}}, "statistics must be ",
              tensor_type{computed_in(c.in(0).element), {c.in(0).dims[1]}}, ", got ", c.in(i));
    detail::require_dense(c, i);
  }
  detail::require_vectors(c, 3, c.in(0).dims[1], "scale and shift");
  c.fresh(c.in(0));
}

NEAP_FUNC void batch_norm_inference::relate(dim_context& c) const {
  c.same(0, 0, 0, 0);
  for (int i = 0; i < c.arity(); ++i) c.same(i, i == 0, 0, 1);
}

NEAP_FUNC void batch_norm_inference::gradient(gradient_context& c) const {
  value_id const g = c.grad();
  auto const x = c.type(c.in(0));
  int const rank = x.rank();
  auto const in_type = [&](value_id v) { return detail::in_element(c, v, x.element); };
  value_id const rstd = detail::along_channels(c, in_type(c.emit(rsqrt{}, {c.emit(add_scalar{eps}, {c.in(2)})})), rank);
  if (c.wants(0)) {
    value_id scale = rstd;
    if (c.arity() > 3) scale = c.emit(mul{}, {scale, detail::along_channels(c, c.in(3), rank)});
    c.give(0, c.emit(mul{}, {g, scale}));
  }
  extents others{0};
  for (int k = 2; k < rank; ++k) others.push_back(k);
  if (c.wants(3)) {
    value_id const mean = detail::along_channels(c, in_type(c.in(1)), rank);
    value_id const h = c.emit(mul{}, {c.emit(sub{}, {c.in(0), mean}), rstd});
    c.give(3, c.emit(sum{others}, {c.emit(mul{}, {h, g})}));
  }
  if (c.wants(4)) c.give(4, c.emit(sum{others}, {g}));
}

NEAP_FUNC void group_norm_grad::infer(shape_context& c) const {
  c.require_arity(4, 5);
  detail::require_channels(c, 0), detail::require_channels(c, 1);
  detail::require_same_type(c, 0, 1);
  for (int i : {2, 3})
    detail::require_dims(c, i, {c.in(1).dims[0], groups}, "a statistic"), detail::require_dense(c, i);
  detail::require_vectors(c, 4, c.in(1).dims[1], "scale");
  c.fresh(c.in(1));
  for (int j = 0; c.arity() == 5 && j < 2; ++j) c.fresh(tensor_type{c.in(1).element, {c.in(1).dims[1]}});
}

NEAP_FUNC void group_norm::infer(shape_context& c) const {
  c.require_arity(1, 3);
  detail::require_channels(c, 0);
  c.require(groups > 0 && c.in(0).dims[1] % groups == 0, groups, " groups do not divide the channels of ", c.in(0));
  detail::require_vectors(c, 1, c.in(0).dims[1], "scale and shift");
  c.fresh(c.in(0));
  for (int j = 0; j < 2; ++j) c.fresh(tensor_type{computed_in(c.in(0).element), {c.in(0).dims[0], groups}});
}

NEAP_FUNC void group_norm::gradient(gradient_context& c) const {
  auto const x = c.type(c.in(0)).dims;
  shape in_groups{x[0], groups, x[1] / groups};
  for (int k = 2; k < x.rank(); ++k) in_groups[2] *= x[k];
  value_id const g = c.grad();
  detail::norm_gradient(c, view_of(group_norm_grad{groups}), 2, g == nothing<value_id> ? g : dense(c, g), in_groups,
                        {x[0], groups, 1});
}

NEAP_FUNC bytes_t batch_norm_grad::workspace(work_context const& c) const {
  return neap::batch_norm_workspace(c.in[1].type);
}

NEAP_FUNC bytes_t batch_norm_relu_grad::workspace(work_context const& c) const {
  return neap::batch_norm_workspace(c.in[1].type);
}

NEAP_FUNC bytes_t batch_norm_inference::workspace(work_context const& c) const {
  return neap::batch_norm_workspace(c.in[0].type);
}

NEAP_FUNC bytes_t group_norm_grad::workspace(work_context const& c) const {
  return neap::group_norm_backward_workspace(c.in[1].type);
}

}}}  // namespace neap::v0::op
