// The kernels of <neap/ir/operators/image.hpp>.
#pragma once

#include <neap/ir/operators/image.hpp>

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/interpolate.hpp>
#include <neap/backend/kernels/pool2d.hpp>
#include <neap/core/element.hpp>
#include <neap/ir/operators/kernels/by_f32.hpp>

#include <concepts>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
/// kernel(arguments), by way of f32 where they are bf16 or f16.
template <class Backend, class Kernel>
void run_images(Backend& b, kernel_arguments const& a, Kernel const& kernel) {
  if (!is_low(a.out[0].element)) return kernel(a);
  run_widened(b, a, {}, [&](kernel_arguments const& wide, bool) { kernel(wide); });
}
}  // namespace detail

template <std::same_as<host_backend> Backend>
void run(Backend& b, max_pool2d const& op, kernel_arguments const& given) {
  detail::run_images(b, given, [&](kernel_arguments const& a) {
    neap::max_pool2d(b, a.in[0], a.out[0], a.out[1], detail::pool_of(op));
  });
}

template <std::same_as<host_backend> Backend>
void run(Backend& b, max_pool2d_grad const& op, kernel_arguments const& given) {
  detail::run_images(b, given, [&](kernel_arguments const& a) {
    neap::max_pool2d_gradient(b, a.in[0], a.in[1], a.out[0], detail::pool_of(op));
  });
}

template <std::same_as<host_backend> Backend>
void run(Backend& b, avg_pool2d const& op, kernel_arguments const& given) {
  detail::run_images(b, given,
                     [&](kernel_arguments const& a) { neap::avg_pool2d(b, a.in[0], a.out[0], detail::pool_of(op)); });
}

template <std::same_as<host_backend> Backend>
void run(Backend& b, avg_pool2d_grad const& op, kernel_arguments const& given) {
  detail::run_images(b, given, [&](kernel_arguments const& a) {
    neap::avg_pool2d_gradient(b, a.in[0], a.out[0], detail::pool_of(op));
  });
}

template <std::same_as<host_backend> Backend>
void run(Backend& b, adaptive_avg_pool2d const&, kernel_arguments const& given) {
  detail::run_images(b, given, [&](kernel_arguments const& a) { neap::adaptive_avg_pool2d(b, a.in[0], a.out[0]); });
}

template <std::same_as<host_backend> Backend>
void run(Backend& b, adaptive_avg_pool2d_grad const&, kernel_arguments const& given) {
  detail::run_images(b, given,
                     [&](kernel_arguments const& a) { neap::adaptive_avg_pool2d_gradient(b, a.in[0], a.out[0]); });
}

template <std::same_as<host_backend> Backend>
void run(Backend& b, interpolate const& op, kernel_arguments const& given) {
  detail::run_images(b, given, [&](kernel_arguments const& a) {
    neap::interpolate(b, a.in[0], a.out[0], detail::resize_options(op.bilinear, op.align_corners));
  });
}

template <std::same_as<host_backend> Backend>
void run(Backend& b, interpolate_grad const& op, kernel_arguments const& given) {
  detail::run_images(b, given, [&](kernel_arguments const& a) {
    neap::interpolate_gradient(b, a.in[0], a.out[0], detail::resize_options(op.bilinear, op.align_corners));
  });
}

}}}  // namespace neap::v0::op
