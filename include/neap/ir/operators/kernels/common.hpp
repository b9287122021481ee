// The kernels of <neap/ir/operators/common.hpp>.
#pragma once

#include <neap/ir/operators/common.hpp>

#include <neap/backend/kernels/elementwise.hpp>

namespace neap { inline namespace v0 { namespace op {

template <class Backend, scalar_operator Op>
void run(Backend& b, Op const& op, kernel_arguments const& a) {
  if constexpr (Op::map_inputs == 1) neap::map(b, op, a.out[0], a.in[0]);
  else if constexpr (Op::map_inputs == 2) neap::map(b, op, a.out[0], a.in[0], a.in[1]);
  else if constexpr (Op::map_inputs == 3) neap::map(b, op, a.out[0], a.in[0], a.in[1], a.in[2]);
  else neap::map(b, op, a.out[0], a.in[0], a.in[1], a.in[2], a.in[3]);
}

}}}  // namespace neap::v0::op
