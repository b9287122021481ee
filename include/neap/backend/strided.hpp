// Walking over views. Kernels that work element by element see every operand, whatever its strides and element type, as
// short contiguous runs in the type they compute in: directly where it lies that way, else copied through a small
// buffer. So there is one compiled loop for all layouts, and hence one result.
#pragma once

#include <neap/backend/block.hpp>
#include <neap/core/element.hpp>
#include <neap/core/tensor_ref.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

/// Throws neap::error with the message unless the claim holds.
inline void expect(bool claim, char const* message) {
  if (!claim) throw_error({message});
}

// The bounds of an integer type, as constants that device code may read (it may not call functions of the host).
template <class T>
inline constexpr T least_integer = std::numeric_limits<T>::min();
template <class T>
inline constexpr T largest_integer = std::numeric_limits<T>::max();

/// Floating to integer: towards 0; what is out of range becomes the nearest, and not-a-number 0.
template <class To, class From>
NEAP_HD NEAP_INLINE To to_integer(From x) {
  constexpr auto low = static_cast<From>(least_integer<To>);
  constexpr auto high = static_cast<From>(largest_integer<To>);  // perhaps rounded up
  if (x >= high) return largest_integer<To>;
  if (x <= low) return least_integer<To>;
  return x != x ? To(0) : static_cast<To>(x);
}

/// A value in another element type. To bool: whether it is not 0; floating to integer: see to_integer.
template <class To, class From>
NEAP_HD NEAP_INLINE To convert(From x) {
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (std::is_same_v<To, bool>) return static_cast<compute_t<From>>(x) != compute_t<From>(0);
  else if constexpr (std::is_same_v<To, bf16> || std::is_same_v<To, f16>) return To(static_cast<float>(x));
  else if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>)
    return to_integer<To>(static_cast<compute_t<From>>(x));
  else return static_cast<To>(static_cast<compute_t<From>>(x));
}

/// An operand as seen through the linear (row-major) index of a shape: few axes, the last one longest possible.
struct strided {
  std::byte* data = nullptr;
  dtype element = dtype::f32;
  int rank = 0;  // at least 1
  std::int64_t dims[max_rank]{}, strides[max_rank]{};

  /// The bytes of one element into the operand.
  std::byte* at(std::int64_t offset) const { return data + offset * size_of(element); }
};

/// `x` as seen through `whole`: missing leading axes and axes of extent 1 are broadcast. Throws if it does not fit.
inline strided view_through(shape const& whole, tensor_ref const& x) {
  strided v{static_cast<std::byte*>(x.data), x.element, 0, {}, {}};
  int const missing = whole.rank() - x.rank();
  expect(missing >= 0, "an operand has more axes than the result");
  for (int axis = 0; axis < whole.rank(); ++axis) {
    std::int64_t const extent = whole[axis];
    if (extent == 1) continue;
    std::int64_t stride = 0;
    if (axis >= missing && x.dims[axis - missing] != 1) {
      if (x.dims[axis - missing] != extent) throw_error({"shapes do not fit: ", x.dims, " in ", whole});
      stride = x.strides[axis - missing];
    }
    if (v.rank > 0 && v.strides[v.rank - 1] == stride * extent) {
      v.dims[v.rank - 1] *= extent;
      v.strides[v.rank - 1] = stride;
    } else {
      v.dims[v.rank] = extent;
      v.strides[v.rank++] = stride;
    }
  }
  for (int axis = 0; axis < x.rank() - whole.rank(); ++axis) expect(x.dims[axis] == 1, "an operand has too many axes");
  if (v.rank == 0) v.rank = 1, v.dims[0] = 1, v.strides[0] = 1;
  return v;
}

/// Calls f(offset, length, stride) for the runs along the last axis that make up the linear indices [begin, begin + n).
template <class F>
NEAP_INLINE void for_each_run(strided const& v, std::int64_t begin, std::int64_t n, F&& f) {
  if (n <= 0) return;  // an extent may be 0
  std::int64_t at[max_rank];
  std::int64_t offset = 0, rest = begin;
  for (int axis = v.rank - 1; axis >= 0; --axis) {
    at[axis] = axis > 0 ? rest % v.dims[axis] : rest;
    rest = axis > 0 ? rest / v.dims[axis] : 0;
    offset += at[axis] * v.strides[axis];
  }
  int const last = v.rank - 1;
  while (n > 0) {
    std::int64_t const left = v.dims[last] - at[last], length = n < left ? n : left;
    f(offset, length, v.strides[last]);
    n -= length;
    if (length < left || n == 0) return;
    offset -= at[last] * v.strides[last];
    at[last] = 0;
    for (int axis = last - 1; axis >= 0; --axis) {
      offset += v.strides[axis];
      if (++at[axis] < v.dims[axis]) break;
      offset -= at[axis] * v.strides[axis];
      at[axis] = 0;
    }
  }
}

/// n elements converted from one array to another; strides in elements. One of them is 1, where from_stride may be 0.
using convert_run_type = void (*)(void* to, std::int64_t to_stride, void const* from, std::int64_t from_stride,
                                  std::int64_t n);

template <class To, class From>
__attribute__((noinline)) void convert_run(void* out, std::int64_t to_stride, void const* in, std::int64_t from_stride,
                                           std::int64_t n) {
  To* const to = static_cast<To*>(out);
  From const* const from = static_cast<From const*>(in);
  // Lanes where it is worth compiling them: for what stays as it is and to and from float.
  if constexpr (std::is_same_v<To, From> || std::is_same_v<To, float> || std::is_same_v<From, float>)
    if (to_stride == 1 && from_stride == 1)
      return host_block{}.each(n, [=](std::int64_t i) { to[i] = convert<To>(from[i]); });
  for (std::int64_t i = 0; i < n; ++i) to[i * to_stride] = convert<To>(from[i * from_stride]);
}
template <class C>
__attribute__((noinline)) void fill_run(C* to, std::int64_t n) {
  C const x = to[0];
  host_block{}.each(n, [=](std::int64_t i) { to[i] = x; });
}

/// How elements of type t become C, and C becomes elements of type t. Throws neap::error for types kernels do not know.
template <class C>
convert_run_type conversion_from(dtype t) {
  return with_type(t, [](auto tag) -> convert_run_type { return &convert_run<C, typename decltype(tag)::type>; });
}
template <class C>
convert_run_type conversion_to(dtype t) {
  return with_type(t, [](auto tag) -> convert_run_type { return &convert_run<typename decltype(tag)::type, C>; });
}

/// Copies n elements from linear index `begin` on into a buffer of another type.
template <class C>
__attribute__((noinline)) void gather(strided const& v, std::int64_t begin, std::int64_t n, C* to) {
  auto const converted = conversion_from<C>(v.element);
  for_each_run(v, begin, n, [&](std::int64_t offset, std::int64_t length, std::int64_t stride) {
    if (stride != 0) {
      converted(to, 1, v.at(offset), stride, length);
    } else {
      converted(to, 1, v.at(offset), 1, 1);
      fill_run(to, length);
    }
    to += length;
  });
}

/// The way back.
template <class C>
__attribute__((noinline)) void scatter(strided const& v, std::int64_t begin, std::int64_t n, C const* from) {
  auto const converted = conversion_to<C>(v.element);
  for_each_run(v, begin, n, [&](std::int64_t offset, std::int64_t length, std::int64_t stride) {
    converted(v.at(offset), stride, from, 1, length);
    from += length;
  });
}

/// Where elements [begin, begin + n) lie contiguously in type C already; nullptr if they do not.
template <class C>
C* direct(strided const& v, std::int64_t begin, std::int64_t n) {
  int const last = v.rank - 1;
  if (v.element != dtype_of<C> || v.strides[last] != 1) return nullptr;
  std::int64_t rest = begin, offset = 0;
  if (last > 0) {
    std::int64_t const at = rest % v.dims[last];
    if (at + n > v.dims[last]) return nullptr;
    offset = at, rest /= v.dims[last];
    for (int axis = last - 1; axis > 0; --axis) {
      offset += rest % v.dims[axis] * v.strides[axis];
      rest /= v.dims[axis];
    }
  }
  return reinterpret_cast<C*>(v.at(offset + rest * v.strides[0]));
}

/// Elements [begin, begin + n) in type C: where they lie, or in `room`.
template <class C>
C const* staged(strided const& v, std::int64_t begin, std::int64_t n, C* room) {
  if (C const* p = direct<C>(v, begin, n)) return p;
  gather(v, begin, n, room);
  return room;
}

}}}  // namespace neap::v0::detail
