// Tensors as libraries of the device's vendor take them.
#pragma once

#include <neap/core/tensor_ref.hpp>
#include <neap/cuda/library_way.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace neap { inline namespace v0 { namespace detail {

/// Axes that are missing behind have one element.
inline library_tensor library_tensor_of(tensor_ref const& t) {
  library_tensor out{{1, 1, 1, 1}, {1, 1, 1, 1}};
  for (int i = 0; i < t.rank(); ++i) {
    auto const u = static_cast<std::size_t>(i);
    out.dims[u] = t.dims[i], out.strides[u] = t.strides[i];
  }
  return out;
}
/// Whether all addresses are multiples of 16 bytes; tensors that are not placed yet count as such.
inline bool for_library(std::initializer_list<tensor_ref const*> all) {
  for (auto const* t : all)
    if (reinterpret_cast<std::uintptr_t>(t->data) % 16 != 0) return false;
  return true;
}

}}}  // namespace neap::v0::detail
