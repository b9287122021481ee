// The kernels of <neap/ir/operators/channel_norm.hpp>.
#pragma once

#include <neap/ir/operators/channel_norm.hpp>

#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/kernels/group_norm.hpp>

#include <array>

namespace neap { inline namespace v0 { namespace op {

template <class Backend>
void run(Backend& b, batch_norm const& op, kernel_arguments const& a) {
  neap::batch_norm(b, a.out[0], a.out[1], a.out[2], a.in[0], detail::optional(a.in, 1), detail::optional(a.in, 2),
                   op.eps);
}

template <class Backend>
void run(Backend& b, batch_norm_grad const&, kernel_arguments const& a) {
  neap::batch_norm_backward(b, a.out[0], detail::optional(a.out, 1), detail::optional(a.out, 2), a.in[0], a.in[1],
                            a.in[2], a.in[3], detail::optional(a.in, 4), a.workspace);
}

template <class Backend>
void run(Backend& b, batch_norm_relu_grad const&, kernel_arguments const& a) {
  neap::batch_norm_relu_backward(b, a.out[0], a.out[1], a.out[2], detail::optional(a.out, 3), a.in[0], a.in[1], a.in[2],
                                 a.in[3], a.in[4], a.in[5], a.workspace);
}

template <class Backend>
void run(Backend& b, batch_norm_update const& op, kernel_arguments const& a) {
  double const n = static_cast<double>(op.count);
  neap::map(b, detail::running_average{op.momentum, op.eps, op.count > 1 ? n / (n - 1) : 1.0},
            std::array<tensor_ref, 2>{a.in[0], a.in[1]}, a.in[0], a.in[1], a.in[2], a.in[3]);
}

template <class Backend>
void run(Backend& b, batch_norm_inference const& op, kernel_arguments const& a) {
  neap::batch_norm_inference(b, a.out[0], a.in[0], a.in[1], a.in[2], detail::optional(a.in, 3),
                             detail::optional(a.in, 4), op.eps, a.workspace);
}

template <class Backend>
void run(Backend& b, group_norm const& op, kernel_arguments const& a) {
  neap::group_norm(b, a.out[0], a.out[1], a.out[2], a.in[0], detail::optional(a.in, 1), detail::optional(a.in, 2),
                   op.groups, op.eps);
}

template <class Backend>
void run(Backend& b, group_norm_grad const& op, kernel_arguments const& a) {
  neap::group_norm_backward(b, a.out[0], detail::optional(a.out, 1), detail::optional(a.out, 2), a.in[0], a.in[1],
                            a.in[2], a.in[3], detail::optional(a.in, 4), op.groups, a.workspace);
}

}}}  // namespace neap::v0::op
