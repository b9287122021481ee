// The kernels of <neap/ir/operators/unary.hpp>.
#pragma once

#include <neap/ir/operators/unary.hpp>

#include <neap/backend/kernels/elementwise.hpp>
#include <neap/ir/operators/kernels/common.hpp>

#include <array>

namespace neap { inline namespace v0 { namespace op {

template <class Backend, class F>
void run(Backend& b, grad_and_result<F> const& op, kernel_arguments const& a) {
  neap::map(b, op, std::array<tensor_ref, 2>{a.out[0], a.out[1]}, a.in[0], a.in[1]);
}

template <class Backend>
void run(Backend& b, grad_and_result<gelu> const& op, kernel_arguments const& a) {
  std::array<tensor_ref, 2> const out{a.out[0], a.out[1]};
  if (op.tanh_form) neap::map(b, detail::gelu_grad_and_result<true>{}, out, a.in[0], a.in[1]);
  else neap::map(b, detail::gelu_grad_and_result<false>{}, out, a.in[0], a.in[1]);
}

template <class Backend>
void run(Backend& b, gelu const& op, kernel_arguments const& a) {
  if (op.tanh_form) neap::map(b, detail::gelu_function<true>{}, a.out[0], a.in[0]);
  else neap::map(b, detail::gelu_function<false>{}, a.out[0], a.in[0]);
}

template <class Backend>
void run(Backend& b, gelu_grad const& op, kernel_arguments const& a) {
  if (op.tanh_form) neap::map(b, detail::gelu_function<true>{}, a.out[0], a.in[0], a.in[1]);
  else neap::map(b, detail::gelu_function<false>{}, a.out[0], a.in[0], a.in[1]);
}

}}}  // namespace neap::v0::op
