// What a library of the device's vendor (products.hpp, convolutions.hpp) answers for an operation.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string_view>

namespace neap { inline namespace v0 {

/// What computes an operation on a GPU.
struct cuda_library_way {
  bool by_library = false;
  std::string_view reason;  // why our own kernel does; empty if the library does
};

/// Extents and strides, in elements.
struct library_tensor {
  std::array<std::int64_t, 4> dims{}, strides{};
  friend auto operator<=>(library_tensor const&, library_tensor const&) = default;
};

}}  // namespace neap::v0
