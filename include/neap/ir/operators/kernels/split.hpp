// The kernels of <neap/ir/operators/split.hpp>.
#pragma once

#include <neap/ir/operators/split.hpp>

namespace neap { inline namespace v0 { namespace op {

template <class Backend>
void run(Backend&, split const&, kernel_arguments const&) {}

}}}  // namespace neap::v0::op
