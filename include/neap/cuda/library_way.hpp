// What a library of the device's vendor (products.hpp, convolutions.hpp) answers for an operation.
#pragma once

#include <string_view>

namespace neap::inline v0 {

/// What computes an operation on a GPU.
struct cuda_library_way {
  bool by_library = false;
  std::string_view reason;  // why our own kernel does; empty if the library does
};

}  // namespace neap::inline v0
