// The kernels of <neap/ir/operators/reduction.hpp>.
#pragma once

#include <neap/ir/operators/reduction.hpp>

#include <neap/backend/kernels/arg_max.hpp>
#include <neap/backend/kernels/cumsum.hpp>
#include <neap/backend/kernels/reduce.hpp>

namespace neap { inline namespace v0 { namespace op {

template <class Backend, reduction_operator Op>
void run(Backend& b, Op const& op, kernel_arguments const& a) {
  neap::reduce(b, Op::kind, a.out[0], a.in[0], detail::reduced_axes(op.axes, a.in[0].rank()).span(), a.workspace);
}

template <class Backend>
void run(Backend& b, arg_max const& op, kernel_arguments const& a) {
  neap::arg_max(b, a.out[0], a.in[0], static_cast<int>(op.axis));
}

template <class Backend>
void run(Backend& b, cumsum const& op, kernel_arguments const& a) {
  neap::cumsum(b, a.out[0], a.in[0], detail::plain_axis(op.axis, a.in[0].rank()), op.reverse);
}

}}}  // namespace neap::v0::op
