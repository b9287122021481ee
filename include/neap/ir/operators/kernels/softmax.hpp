// The kernels of <neap/ir/operators/softmax.hpp>.
#pragma once

#include <neap/ir/operators/softmax.hpp>

#include <neap/backend/kernels/softmax.hpp>

namespace neap { inline namespace v0 { namespace op {

template <class Backend>
void run(Backend& b, softmax const&, kernel_arguments const& a) {
  neap::softmax(b, a.out[0], a.in[0]);
}

template <class Backend>
void run(Backend& b, log_softmax const&, kernel_arguments const& a) {
  neap::log_softmax(b, a.out[0], a.in[0]);
}

template <class Backend>
void run(Backend& b, softmax_grad const&, kernel_arguments const& a) {
  neap::softmax_backward(b, a.out[0], a.in[0], a.in[1]);
}

template <class Backend>
void run(Backend& b, log_softmax_grad const&, kernel_arguments const& a) {
  neap::log_softmax_backward(b, a.out[0], a.in[0], a.in[1]);
}

}}}  // namespace neap::v0::op
