// The kernels of <neap/ir/operators/parts.hpp>.
#pragma once

#include <neap/ir/operators/parts.hpp>

#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/kernels/elementwise.hpp>

namespace neap { inline namespace v0 { namespace op {

template <class Backend>
void run(Backend&, blank const&, kernel_arguments const&) {}

template <class Backend>
void run(Backend& b, place const& op, kernel_arguments const& a) {
  neap::copy_into(b, a.in[0], detail::plain_axis(op.axis, a.in[0].rank()), op.start, a.in[1]);
}

template <class Backend>
void run(Backend& b, combine_into const& op, kernel_arguments const& a) {
  if (op.how == combine::max) neap::map(b, maximum{}, a.in[0], a.in[0], a.in[1]);  // a NaN wins, as in max_reduce
  else if (op.how == combine::min) neap::map(b, minimum{}, a.in[0], a.in[0], a.in[1]);
  else neap::map(b, add{}, a.in[0], a.in[0], a.in[1]);
}

}}}  // namespace neap::v0::op
