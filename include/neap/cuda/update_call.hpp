// One of several neighbouring updates that a device may make in one launch (cuda/kernels/update_many.cuh).
#pragma once

#include <neap/core/tensor_ref.hpp>

namespace neap { inline namespace v0 { namespace detail {

struct update_call {
  void const* op = nullptr;  // the operator's attributes
  kernel_arguments arguments;
};

}}}  // namespace neap::v0::detail
