// The kernels of <neap/ir/operators/conv2d.hpp>.
#pragma once

#include <neap/ir/operators/conv2d.hpp>

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/conv2d.hpp>
#include <neap/core/element.hpp>
#include <neap/ir/operators/kernels/by_f32.hpp>
#include <neap/ir/operators/kernels/threads.hpp>

#include <concepts>

namespace neap { inline namespace v0 { namespace op {

template <std::same_as<host_backend> Backend>
void run(Backend& b, conv2d const& op, kernel_arguments const& a) {
  if (is_low(a.out[0].element))
    return detail::run_widened(b, a, op.weight_of_all, [&](kernel_arguments const& wide, bool) { run(b, op, wide); });
  detail::on_planned_threads(b, [&](host_backend& at) {
    neap::conv2d(at, a.in[0], a.in[1], detail::optional(a.in, 2), a.out[0], detail::options_of(op), a.workspace);
  });
}

template <std::same_as<host_backend> Backend>
void run(Backend& b, conv2d_grad_input const& op, kernel_arguments const& a) {
  if (is_low(a.out[0].element))
    return detail::run_widened(b, a, op.weight_of_all, [&](kernel_arguments const& wide, bool) { run(b, op, wide); });
  detail::on_planned_threads(b, [&](host_backend& at) {
    neap::conv2d_input_gradient(at, a.in[0], a.in[1], a.out[0], detail::options_of(op), a.workspace);
  });
}

template <std::same_as<host_backend> Backend>
void run(Backend& b, conv2d_grad_weight const& op, kernel_arguments const& a) {
  auto const gradient = [&](kernel_arguments const& wide, bool adds) {
    detail::on_planned_threads(b, [&](host_backend& at) {
      neap::conv2d_weight_gradient(at, wide.in[0], wide.in[1], wide.out[0], detail::options_of(op), wide.workspace,
                                   adds);
    });
  };
  if (is_low(a.out[0].element)) return detail::run_widened(b, a, op.sums_of_all, gradient);
  gradient(a, false);
}

}}}  // namespace neap::v0::op
