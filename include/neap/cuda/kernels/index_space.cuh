// Several operands of any strides, as seen through one linear index: what kernels on a device that work element by element
// walk. Axes are joined where all operands allow it, and divisions by extents are products.
#pragma once

#include <neap/backend/strided.hpp>
#include <neap/core/config.hpp>
#include <neap/core/tensor_ref.hpp>

#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 { namespace detail {

/// Quotients of numbers below 2^31, by a product and a shift (Granlund and Montgomery 1994).
struct quick_divisor {
  std::uint32_t by = 1, factor = 0, shift = 0;

  quick_divisor() = default;
  explicit quick_divisor(std::uint32_t divisor) : by(divisor) {
    if (divisor < 2) return;
    std::uint32_t log = 0;  // rounded up
    while ((std::uint64_t{1} << log) < divisor) ++log;
    factor = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + log)) + divisor - 1) / divisor);
    shift = log - 1;
  }
  NEAP_HD NEAP_INLINE std::uint32_t quotient(std::uint32_t n) const {
    return by < 2 ? n : static_cast<std::uint32_t>((std::uint64_t{n} * factor) >> 32) >> shift;
  }
};

/// `Operands` tensors of one shape. Strides are in bytes.
template <int Operands>
struct index_space {
  std::byte* data[Operands]{};
  dtype element[Operands]{};
  std::uint8_t size[Operands]{};  // of an element, in bytes
  bool below_2_31 = true;         // there are fewer indices
  int rank = 0;                   // at least 1
  std::int64_t count = 1;
  std::int64_t dims[max_rank]{};
  quick_divisor divisor[max_rank]{};
  std::int64_t strides[max_rank][Operands]{};

  index_space() = default;
  /// Each operand is broadcast to `whole`. Throws neap::error if one does not fit.
  index_space(shape const& whole, tensor_ref const* const (&x)[Operands]) {
    for (int k = 0; k < Operands; ++k) {
      (void)view_through(whole, *x[k]);  // it fits
      data[k] = static_cast<std::byte*>(x[k]->data);
      element[k] = x[k]->element;
      size[k] = static_cast<std::uint8_t>(size_of(x[k]->element));
    }
    for (int axis = 0; axis < whole.rank(); ++axis) {
      std::int64_t const extent = whole[axis];
      count *= extent;
      if (extent == 1) continue;
      std::int64_t step[Operands];
      bool joins = rank > 0;
      for (int k = 0; k < Operands; ++k) {
        int const own = axis - (whole.rank() - x[k]->rank());
        step[k] = own < 0 || x[k]->dims[own] == 1 ? 0 : x[k]->strides[own] * size[k];
        joins = joins && strides[rank - 1][k] == step[k] * extent;
      }
      if (!joins) dims[rank++] = 1;
      dims[rank - 1] *= extent;
      for (int k = 0; k < Operands; ++k) strides[rank - 1][k] = step[k];
    }
    if (rank == 0) dims[rank++] = 1;
    below_2_31 = count < std::int64_t{1} << 31;
    for (int axis = 0; axis < rank; ++axis)
      divisor[axis] = quick_divisor(below_2_31 ? static_cast<std::uint32_t>(dims[axis]) : 1);
  }

  /// Whether operand k's elements follow one another along the last axis; or it has the same element all along.
  NEAP_HD bool runs(int k) const { return strides[rank - 1][k] == size[k]; }
  NEAP_HD bool repeats(int k) const { return strides[rank - 1][k] == 0; }
  /// Whether `length` elements of operand k from each multiple of that index on lie together, aligned for accesses of up to
  /// 16 bytes.
  bool has_packs(int k, std::int64_t length) const {
    std::int64_t const bytes = length * size[k], alignment = bytes < 16 ? bytes : 16;
    bool fits = runs(k) && (rank == 1 || dims[rank - 1] % length == 0);
    fits = fits && reinterpret_cast<std::uintptr_t>(data[k]) % static_cast<std::uintptr_t>(alignment) == 0;
    for (int axis = 0; axis + 1 < rank && axis < max_rank; ++axis) fits = fits && strides[axis][k] % alignment == 0;
    return fits;
  }

  /// Whether one element of operand k serves the `length` elements from each multiple of that index on.
  bool repeats_packs(int k, std::int64_t length) const {
    return repeats(k) && (rank == 1 || dims[rank - 1] % length == 0);
  }

  /// How many bytes behind its data operand k has its element of a linear index.
  NEAP_HD NEAP_INLINE std::int64_t offset_of(int k, std::int64_t index) const {
    std::int64_t offset = 0;
    if (below_2_31) {
      auto rest = static_cast<std::uint32_t>(index);
      for (int axis = rank - 1; axis > 0; --axis) {
        std::uint32_t const next = divisor[axis].quotient(rest);
        offset += static_cast<std::int64_t>(rest - next * divisor[axis].by) * strides[axis][k];
        rest = next;
      }
      return offset + static_cast<std::int64_t>(rest) * strides[0][k];
    }
    for (int axis = rank - 1; axis > 0; --axis) {
      offset += index % dims[axis] * strides[axis][k];
      index /= dims[axis];
    }
    return offset + index * strides[0][k];
  }

  /// Where each operand has its element of a linear index.
  NEAP_HD NEAP_INLINE void place(std::int64_t index, std::byte* (&at)[Operands]) const {
    std::int64_t offset[Operands]{};
    if (below_2_31) {
      auto rest = static_cast<std::uint32_t>(index);
      for (int axis = rank - 1; axis > 0; --axis) {
        std::uint32_t const next = divisor[axis].quotient(rest);
        std::int64_t const here = rest - next * divisor[axis].by;
        rest = next;
        for (int k = 0; k < Operands; ++k) offset[k] += here * strides[axis][k];
      }
      for (int k = 0; k < Operands; ++k) offset[k] += static_cast<std::int64_t>(rest) * strides[0][k];
    } else {
      for (int axis = rank - 1; axis > 0; --axis) {
        std::int64_t const here = index % dims[axis];
        index /= dims[axis];
        for (int k = 0; k < Operands; ++k) offset[k] += here * strides[axis][k];
      }
      for (int k = 0; k < Operands; ++k) offset[k] += index * strides[0][k];
    }
    for (int k = 0; k < Operands; ++k) at[k] = data[k] + offset[k];
  }
};

/// f(type_tag<T>) for the type of an element, on a device too; nothing for types that kernels do not know.
template <class F>
NEAP_HD NEAP_INLINE void with_element(dtype t, F&& f) {
  switch (t) {
    case dtype::f64: return f(type_tag<double>{});
    case dtype::f32: return f(type_tag<float>{});
    case dtype::bf16: return f(type_tag<bf16>{});
    case dtype::f16: return f(type_tag<f16>{});
    case dtype::i64: return f(type_tag<std::int64_t>{});
    case dtype::i32: return f(type_tag<std::int32_t>{});
    case dtype::u8: return f(type_tag<std::uint8_t>{});
    case dtype::boolean: return f(type_tag<bool>{});
    default: return;
  }
}

/// The element at an address, in the type that is computed in, and back.
template <class C>
NEAP_HD NEAP_INLINE C load_element(std::byte const* at, dtype t) {
  C x{};
  with_element(t, [&](auto tag) { x = convert<C>(*reinterpret_cast<typename decltype(tag)::type const*>(at)); });
  return x;
}
template <class C>
NEAP_HD NEAP_INLINE void store_element(std::byte* at, dtype t, C x) {
  with_element(t, [&](auto tag) {
    using T = typename decltype(tag)::type;
    *reinterpret_cast<T*>(at) = convert<T>(x);
  });
}

}}}  // namespace neap::v0::detail
