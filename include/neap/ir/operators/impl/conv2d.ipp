// The bodies of <neap/ir/operators/conv2d.hpp>.
#pragma once

#include <neap/ir/operators/conv2d.hpp>

#include <neap/backend/kernels/conv2d.hpp>
#include <neap/core/element.hpp>
#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC work conv2d_work(work_context const& c, tensor_type const& y, tensor_type const& w) {
  work k = streaming_work(c, 0);
  k.flops = 2.0 * static_cast<double>(y.count()) * static_cast<double>(w.dims[1] * w.dims[2] * w.dims[3]);
  return k;
}

NEAP_FUNC shape conv2d_result(shape_context& c, shape const& x, shape const& w, conv2d_options const& o) {
  c.require(x.rank() == 4 && w.rank() == 4, "input and filter need four axes, got ", x, " and ", w);
  c.require(o.groups > 0 && x[1] % o.groups == 0 && w[0] % o.groups == 0, o.groups,
            " groups do not divide the channels of ", x, " and ", w);
  c.require(w[1] == x[1] / o.groups, "the filter ", w, " takes ", w[1], " channels a group, the input ", x, " has ",
            x[1] / o.groups);
  for (std::size_t k : {0u, 1u})
    c.require(o.stride[k] > 0 && o.dilation[k] > 0 && o.padding[k] >= 0,
              "stride and dilation must be positive, padding not negative");
  return neap::conv2d_shape(x, w, o);
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void conv2d_grad_input::relate(dim_context& c) const {
  c.same(0, 0, 0, 0);
  if (groups == 1) c.same(1, 1, 0, 1), c.reduced(0, 1, 0), c.reduced(1, 0, 0);
}

NEAP_FUNC bytes_t conv2d_grad_input::workspace(work_context const& c) const {
  if (is_low(c.out[0].type.element))
    return detail::widened_workspace(c, weight_of_all, [&](work_context const& wide) { return workspace(wide); });
  return neap::conv2d_input_gradient_workspace(c.out[0].type.dims, c.in[1].type.dims, detail::options_of(*this),
                                               c.out[0].type.element, detail::planned_threads());
}

NEAP_FUNC void conv2d_grad_weight::relate(dim_context& c) const {
  c.reduced(0, 0, 0), c.reduced(1, 0, 0);
  if (groups == 1) c.same(0, 1, 0, 1), c.same(1, 1, 0, 0);
}

NEAP_FUNC bytes_t conv2d_grad_weight::workspace(work_context const& c) const {
  if (is_low(c.out[0].type.element))
    return detail::widened_workspace(c, sums_of_all, [&](work_context const& wide) { return workspace(wide); });
  return neap::conv2d_weight_gradient_workspace(c.in[0].type.dims, c.out[0].type.dims, detail::options_of(*this),
                                                c.in[0].type.element, detail::planned_threads());
}

NEAP_FUNC void conv2d::relate(dim_context& c) const {
  c.same(0, 0, 0, 0);
  if (groups != 1) return;
  c.same(1, 0, 0, 1);
  if (c.arity() == 3) c.same(2, 0, 0, 1);
  else c.reduced(0, 1, 0), c.reduced(1, 1, 0);  // parts would each add the shift
}

NEAP_FUNC bytes_t conv2d::workspace(work_context const& c) const {
  if (is_low(c.out[0].type.element))
    return detail::widened_workspace(c, weight_of_all, [&](work_context const& wide) { return workspace(wide); });
  return neap::conv2d_workspace(c.in[0].type.dims, c.in[1].type.dims, detail::options_of(*this), c.in[0].type.element,
                                detail::planned_threads());
}

NEAP_FUNC void conv2d::gradient(gradient_context& c) const {
  value_id const g = c.grad();
  if (c.wants(0))
    c.give(0, c.emit(conv2d_grad_input{c.type(c.in(0)).dims, stride, padding, dilation, groups}, {g, c.in(1)}));
  if (c.wants(1))
    c.give(1, c.emit(conv2d_grad_weight{c.type(c.in(1)).dims, stride, padding, dilation, groups}, {c.in(0), g}));
  if (c.wants(2)) c.give(2, c.emit(sum{{0, 2, 3}}, {g}));
}

NEAP_FUNC void conv2d_grad_input::gradient(gradient_context& c) const {
  if (c.wants(0)) c.give(0, c.emit(conv2d{stride, padding, dilation, groups}, {c.grad(), c.in(1)}));
  if (c.wants(1))
    c.give(1, c.emit(conv2d_grad_weight{c.type(c.in(1)).dims, stride, padding, dilation, groups}, {c.grad(), c.in(0)}));
}

NEAP_FUNC void conv2d_grad_weight::gradient(gradient_context& c) const {
  if (c.wants(0))
    c.give(0, c.emit(conv2d_grad_input{c.type(c.in(0)).dims, stride, padding, dilation, groups}, {c.in(1), c.grad()}));
  if (c.wants(1)) c.give(1, c.emit(conv2d{stride, padding, dilation, groups}, {c.in(0), c.grad()}));
}

}}}  // namespace neap::v0::op
