// The bodies of <neap/ir/operators/image.hpp>.
#pragma once

#include <neap/ir/operators/image.hpp>

#include <neap/backend/kernels/pool2d.hpp>
#include <neap/core/element.hpp>
#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC void require_images(shape_context& c, int i) {
  require_floating(c, i);
  c.require(c.in(i).rank() == 4, "needs [N, C, H, W], got ", c.in(i));
}

NEAP_FUNC void relate_planes(dim_context& c) {
  for (int i = 0; i < c.arity(); ++i) c.same(i, 0, 0, 0), c.same(i, 1, 0, 1);
}

NEAP_FUNC shape pool_result(shape_context& c, shape const& x, pool2d_options const& o) {
  for (std::size_t k : {0u, 1u}) {
    c.require(o.window[k] > 0 && o.stride[k] > 0, "window and stride must be positive");
    c.require(o.padding[k] >= 0 && 2 * o.padding[k] <= o.window[k], "padding must be at most half the window");
    c.require(x[static_cast<int>(2 + k)] + 2 * o.padding[k] >= o.window[k],
              "the window is larger than the padded input ", x);
  }
  return neap::pool2d_shape(x, o);
}

NEAP_FUNC void require_windows(shape_context& c, extents const& window, extents const& stride, extents const& padding) {
  c.require(window.rank() == 2 && stride.rank() == 2 && padding.rank() == 2,
            "window, stride and padding take two numbers each, for rows and columns");
}

NEAP_FUNC bytes_t images_workspace(work_context const& c) {
  return is_low(c.out[0].type.element) ? widened_workspace(c) : 0;
}

NEAP_FUNC bool resizable(shape const& dims, shape const& small) {
  return dims.rank() == 4 && small.rank() == 4 && dims[0] == small[0] && dims[1] == small[1];
}

NEAP_FUNC interpolate_options resize_options(bool bilinear, bool align_corners) {
  return {bilinear ? interpolation::bilinear : interpolation::nearest, align_corners};
}

}  // namespace detail
}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC void max_pool2d_grad::infer(shape_context& c) const {
  c.require_arity(2, 2);
  detail::require_images(c, 0);
  detail::require_windows(c, window, stride, padding);
  c.require(dims.rank() == 4, "dims must be [N, C, H, W], got ", dims);
  auto const o = detail::pool_of(*this);
  detail::require_dims(c, 0, detail::pool_result(c, dims, o), "the gradient");
  c.require(c.in(1) == tensor_type{neap::max_pool2d_place(o), c.in(0).dims}, "places must be ",
            tensor_type{neap::max_pool2d_place(o), c.in(0).dims}, ", got ", c.in(1));
  c.fresh(tensor_type{c.in(0).element, dims});
}

NEAP_FUNC void max_pool2d::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_images(c, 0);
  detail::require_windows(c, window, stride, padding);
  auto const o = detail::pool_of(*this);
  shape const y = detail::pool_result(c, c.in(0).dims, o);
  c.fresh(tensor_type{c.in(0).element, y});
  c.fresh(tensor_type{neap::max_pool2d_place(o), y});
}

NEAP_FUNC void max_pool2d::relate(dim_context& c) const {
  for (int j = 0; j < 2; ++j) c.same(0, 0, j, 0), c.same(0, 1, j, 1);
}

NEAP_FUNC void max_pool2d::gradient(gradient_context& c) const {
  c.give(0, c.emit(max_pool2d_grad{c.type(c.in(0)).dims, window, stride, padding}, {c.grad(), c.out(1)}));
}

NEAP_FUNC void avg_pool2d_grad::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_images(c, 0);
  detail::require_windows(c, window, stride, padding);
  c.require(dims.rank() == 4, "needs [N, C, H, W], got ", dims);
  detail::require_dims(c, 0, detail::pool_result(c, dims, detail::pool_of(*this)), "the gradient");
  c.fresh(tensor_type{c.in(0).element, dims});
}

NEAP_FUNC void avg_pool2d::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_images(c, 0);
  detail::require_windows(c, window, stride, padding);
  c.fresh(tensor_type{c.in(0).element, detail::pool_result(c, c.in(0).dims, detail::pool_of(*this))});
}

NEAP_FUNC void avg_pool2d::gradient(gradient_context& c) const {
  c.give(0, c.emit(avg_pool2d_grad{c.type(c.in(0)).dims, window, stride, padding, count_padding}, {c.grad()}));
}

NEAP_FUNC void adaptive_avg_pool2d_grad::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_images(c, 0);
  c.require(detail::resizable(dims, c.in(0).dims), "the gradient ", c.in(0).dims, " is not that of ", dims);
  c.fresh(tensor_type{c.in(0).element, dims});
}

NEAP_FUNC void adaptive_avg_pool2d::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_images(c, 0);
  c.require(out_h > 0 && out_w > 0, "output extents must be positive");
  c.fresh(tensor_type{c.in(0).element, {c.in(0).dims[0], c.in(0).dims[1], out_h, out_w}});
}

NEAP_FUNC work adaptive_avg_pool2d::cost(work_context const& c) const {
  work w = detail::streaming_work(c, 0);
  w.flops = static_cast<double>(c.in[0].type.count());
  return w;
}

NEAP_FUNC void adaptive_avg_pool2d::gradient(gradient_context& c) const {
  c.give(0, c.emit(adaptive_avg_pool2d_grad{c.type(c.in(0)).dims}, {c.grad()}));
}

NEAP_FUNC void interpolate_grad::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_images(c, 0);
  c.require(detail::resizable(dims, c.in(0).dims), "the gradient ", c.in(0).dims, " is not that of ", dims);
  c.fresh(tensor_type{c.in(0).element, dims});
}

NEAP_FUNC void interpolate::infer(shape_context& c) const {
  c.require_arity(1, 1);
  detail::require_images(c, 0);
  c.require(out_h > 0 && out_w > 0 && c.in(0).dims[2] > 0 && c.in(0).dims[3] > 0, "extents must be positive, ", c.in(0),
            " to ", out_h, " x ", out_w);
  c.fresh(tensor_type{c.in(0).element, {c.in(0).dims[0], c.in(0).dims[1], out_h, out_w}});
}

NEAP_FUNC void interpolate::gradient(gradient_context& c) const {
  c.give(0, c.emit(interpolate_grad{c.type(c.in(0)).dims, bilinear, align_corners}, {c.grad()}));
}

// Means and interpolation are linear: the gradients of their gradients are they themselves.
NEAP_FUNC void avg_pool2d_grad::gradient(gradient_context& c) const {
  c.give(0, c.emit(avg_pool2d{window, stride, padding, count_padding}, {c.grad()}));
}

NEAP_FUNC void adaptive_avg_pool2d_grad::gradient(gradient_context& c) const {
  auto const g = c.type(c.in(0)).dims;
  c.give(0, c.emit(adaptive_avg_pool2d{g[2], g[3]}, {c.grad()}));
}

NEAP_FUNC void interpolate_grad::gradient(gradient_context& c) const {
  auto const g = c.type(c.in(0)).dims;
  c.give(0, c.emit(interpolate{g[2], g[3], bilinear, align_corners}, {c.grad()}));
}

}}}  // namespace neap::v0::op
