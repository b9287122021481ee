// The kernels of <neap/ir/operators/binary.hpp>.
#pragma once

#include <neap/ir/operators/binary.hpp>

#include <neap/backend/kernels/elementwise.hpp>
#include <neap/ir/operators/kernels/common.hpp>
#include <neap/ir/operators/kernels/movement.hpp>
#include <neap/ir/operators/kernels/unary.hpp>

namespace neap { inline namespace v0 { namespace op {

template <class Backend>
void run(Backend& b, where const&, kernel_arguments const& a) {
  neap::where(b, a.out[0], a.in[0], a.in[1], a.in[2]);
}

}}}  // namespace neap::v0::op
