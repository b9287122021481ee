// The kernels of <neap/ir/operators/row_norm.hpp>.
#pragma once

#include <neap/ir/operators/row_norm.hpp>

#include <neap/backend/kernels/layer_norm.hpp>
#include <neap/backend/kernels/rms_norm.hpp>

namespace neap { inline namespace v0 { namespace op {

template <class Backend>
void run(Backend& b, layer_norm const& op, kernel_arguments const& a) {
  neap::layer_norm(b, a.out[0], a.out[1], a.out[2], a.in[0], detail::optional(a.in, 1), detail::optional(a.in, 2),
                   op.eps);
}

template <class Backend>
void run(Backend& b, layer_norm_grad const&, kernel_arguments const& a) {
  neap::layer_norm_backward(b, a.out[0], detail::optional(a.out, 1), detail::optional(a.out, 2), a.in[0], a.in[1],
                            a.in[2], a.in[3], detail::optional(a.in, 4), a.workspace);
}

template <class Backend>
void run(Backend& b, rms_norm const& op, kernel_arguments const& a) {
  neap::rms_norm(b, a.out[0], a.out[1], a.in[0], detail::optional(a.in, 1), op.eps);
}

template <class Backend>
void run(Backend& b, rms_norm_grad const&, kernel_arguments const& a) {
  neap::rms_norm_backward(b, a.out[0], detail::optional(a.out, 1), a.in[0], a.in[1], a.in[2], detail::optional(a.in, 3),
                          a.workspace);
}

}}}  // namespace neap::v0::op
