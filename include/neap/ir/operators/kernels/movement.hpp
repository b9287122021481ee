// The kernels of <neap/ir/operators/movement.hpp>.
#pragma once

#include <neap/ir/operators/movement.hpp>

#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/kernels/reduce.hpp>
#include <neap/backend/kernels/triangle.hpp>

#include <cstdint>

namespace neap { inline namespace v0 { namespace op {

template <class Backend>
void run(Backend& b, copy const&, kernel_arguments const& a) {
  neap::copy(b, a.out[0], a.in[0]);
}

template <class Backend>
void run(Backend& b, cast const&, kernel_arguments const& a) {
  neap::cast(b, a.out[0], a.in[0]);
}

template <class Backend>
void run(Backend& b, fill const& op, kernel_arguments const& a) {
  neap::fill(b, a.out[0], op.value);
}

template <class Backend>
void run(Backend& b, pad const& op, kernel_arguments const& a) {
  extents before = extents::filled(a.in[0].rank(), 0);
  before[detail::plain_axis(op.axis, a.in[0].rank())] = op.before;
  neap::pad(b, a.out[0], a.in[0], before, op.value);
}

template <class Backend>
void run(Backend& b, concat const& op, kernel_arguments const& a) {
  int const k = detail::plain_axis(op.axis, a.out[0].rank());
  std::int64_t at = 0;
  for (auto const& x : a.in) {
    neap::copy_into(b, a.out[0], k, at, x);
    at += x.dims[k];
  }
}

template <class Backend>
void run(Backend& b, sum_to const&, kernel_arguments const& a) {
  neap::sum_to_shape(b, a.out[0], a.in[0], a.workspace);
}

template <class Backend>
void run(Backend& b, triangle const& op, kernel_arguments const& a) {
  neap::triangle(b, a.out[0], a.in[0], op.diagonal, op.upper);
}

template <class Backend, view_operator Op>
void run(Backend&, Op const&, kernel_arguments const&) {}

}}}  // namespace neap::v0::op
