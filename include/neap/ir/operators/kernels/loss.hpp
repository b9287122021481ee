// The kernels of <neap/ir/operators/loss.hpp>.
#pragma once

#include <neap/ir/operators/loss.hpp>

#include <neap/backend/kernels/cross_entropy.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/ir/operators/kernels/common.hpp>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
inline loss_reduction loss_form(bool per_row) { return per_row ? loss_reduction::none : loss_reduction::mean; }
}  // namespace detail

template <class Backend>
void run(Backend& b, cross_entropy const& op, kernel_arguments const& a) {
  neap::cross_entropy_forward(b, a.out[0], a.out[1], a.in[0], a.in[1], detail::loss_form(op.per_row), op.ignore_index,
                              a.workspace, op.smoothing, detail::optional(a.in, 2));
}

template <class Backend>
void run(Backend& b, cross_entropy_grad const& op, kernel_arguments const& a) {
  neap::cross_entropy_backward(b, a.out[0], a.in[0], a.in[1], a.in[3], a.in[2], detail::loss_form(op.per_row),
                               op.ignore_index, a.workspace, op.smoothing, detail::optional(a.in, 4));
}

template <class Backend>
void run(Backend& b, mse const&, kernel_arguments const& a) {
  neap::mse_forward(b, a.out[0], a.in[0], a.in[1], loss_reduction::mean, a.workspace);
}

template <class Backend>
void run(Backend& b, mse_grad const& op, kernel_arguments const& a) {
  neap::mse_backward(b, a.out[0], a.in[0], a.in[1], a.in[2], loss_reduction::mean, op.elements);
}

template <class Backend>
void run(Backend& b, binary_cross_entropy const& op, kernel_arguments const& a) {
  if (op.of_probabilities) neap::map(b, detail::binary_cross_entropy_function<true>{}, a.out[0], a.in[0], a.in[1]);
  else neap::map(b, detail::binary_cross_entropy_function<false>{}, a.out[0], a.in[0], a.in[1]);
}

template <class Backend>
void run(Backend& b, binary_cross_entropy_grad const& op, kernel_arguments const& a) {
  if (op.of_probabilities)
    neap::map(b, detail::binary_cross_entropy_function<true>{}, a.out[0], a.in[0], a.in[1], a.in[2]);
  else neap::map(b, detail::binary_cross_entropy_function<false>{}, a.out[0], a.in[0], a.in[1], a.in[2]);
}

}}}  // namespace neap::v0::op
