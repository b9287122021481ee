// A tensor as a kernel sees it: address of its first element, element type, extents, strides. It owns nothing.
#pragma once

#include <neap/core/config.hpp>
#include <neap/core/tensor_type.hpp>

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace neap { inline namespace v0 {

struct tensor_ref {
  void* data = nullptr;  // the first element (the layout's offset is already added)
  dtype element = dtype::f32;
  shape dims;
  extents strides;  // in elements

  /// A layout placed at a storage's address; null stays null.
  static tensor_ref place(void* storage, tensor_layout const& l) {
    auto const offset = storage ? l.offset * size_of(l.type.element) : 0;
    return {static_cast<std::byte*>(storage) + offset, l.type.element, l.type.dims, l.strides};
  }
  /// The elements as Ts. Debug builds check that they are.
  template <class T>
  NEAP_HD T* as() const {
    assert((data == nullptr || may_be<std::remove_const_t<T>>(element)) &&
           "tensor_ref::as: the elements are of another type");
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
  /// Whether an element of type `t` can be read as a T; types that no tensor has are not distinguished.
  template <class T>
  NEAP_HD static constexpr bool may_be(dtype t) {
    if constexpr (std::is_same_v<T, double>) return t == dtype::f64;
    else if constexpr (std::is_same_v<T, float>) return t == dtype::f32;
    else if constexpr (std::is_same_v<T, bool>) return t == dtype::boolean;
    else if constexpr (std::is_same_v<T, std::int64_t>) return t == dtype::i64;
    else if constexpr (std::is_same_v<T, std::int32_t>) return t == dtype::i32;
    else return true;
  }
  bool is_dense() const { return tensor_layout{{element, dims}, strides, 0}.is_dense(); }
};

/// A kernel's operand. Absent optional inputs and unused outputs have data == nullptr.
struct kernel_arguments {
  std::span<tensor_ref const> in;
  std::span<tensor_ref const> out;
  void* workspace = nullptr;  // as many bytes as the operator's workspace rule requires, 64-byte aligned
};

}}  // namespace neap::v0
