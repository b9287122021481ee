// A tensor as a kernel sees it: address of its first element, element type, extents, strides. It owns nothing.
#pragma once

#include <neap/core/config.hpp>
#include <neap/core/tensor_type.hpp>

#include <cstddef>
#include <span>

namespace neap::inline v0 {

struct tensor_ref {
  void* data = nullptr;  // the first element (the layout's offset is already added)
  dtype element = dtype::f32;
  shape dims;
  extents strides;  // in elements

  /// A layout placed at a storage's address.
  static tensor_ref place(void* storage, tensor_layout const& l) {
    return {static_cast<std::byte*>(storage) + l.offset * size_of(l.type.element), l.type.element, l.type.dims,
            l.strides};
  }
  template <class T>
  NEAP_HD T* as() const {
    return static_cast<T*>(data);
  }
  NEAP_HD int rank() const { return dims.rank(); }
  /// Extent of an axis; negative axes count from the end.
  NEAP_HD std::int64_t extent(int axis) const { return dims[axis < 0 ? axis + dims.rank() : axis]; }
  NEAP_HD std::int64_t count() const {
    std::int64_t n = 1;
    for (int i = 0; i < dims.rank(); ++i) n *= dims[i];
    return n;
  }
  bool is_dense() const { return tensor_layout{{element, dims}, strides, 0}.is_dense(); }
};

/// What a kernel is given. Absent optional inputs and outputs nobody wants have data == nullptr.
struct kernel_arguments {
  std::span<tensor_ref const> in;
  std::span<tensor_ref const> out;
  void* workspace = nullptr;  // as many bytes as the operator's workspace rule asked for, 64-byte aligned
};

}  // namespace neap::inline v0
