// Element types as C++ types: bf16 and f16 for storage (kernels compute them in float), and the step from a dtype known
// at run time to a type known when compiling.
#pragma once

#include <neap/core/config.hpp>
#include <neap/core/error.hpp>
#include <neap/core/tensor_type.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

namespace neap { inline namespace v0 {

/// The upper half of a float. From float it rounds to nearest, ties to even; a NaN stays a NaN.
struct bf16 {
  std::uint16_t bits = 0;

  bf16() = default;
  NEAP_HD explicit constexpr bf16(float x) : bits(encode(x)) {}
  NEAP_HD constexpr operator float() const { return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16); }

 private:
  NEAP_HD static constexpr std::uint16_t encode(float x) {
    std::uint32_t const u = __builtin_bit_cast(std::uint32_t, x);
    std::uint32_t const rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    std::uint32_t const quiet = (u >> 16) | 0x40u;
    return static_cast<std::uint16_t>((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  }
};

/// IEEE binary16. From float it rounds to nearest, ties to even; what is too large becomes infinite.
struct f16 {
  std::uint16_t bits = 0;

  f16() = default;
  NEAP_HD explicit constexpr f16(float x) : bits(encode(x)) {}
  NEAP_HD constexpr operator float() const {
    std::uint32_t const sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    std::uint32_t const rest = static_cast<std::uint32_t>(bits & 0x7fffu) << 13;
    // Normal: move the exponent's bias from 15 to 127. Infinite or NaN: twice, which fills the exponent. Subnormal: as
    // a fraction above 2^-14, less 2^-14, which is exact.
    std::uint32_t const biased = rest + (112u << 23);
    std::uint32_t const special = rest + (224u << 23);
    float const small = __builtin_bit_cast(float, rest + (113u << 23)) - 0x1p-14f;
    std::uint32_t const u = rest < (1u << 23)     ? __builtin_bit_cast(std::uint32_t, small)
                            : rest >= (31u << 23) ? special
                                                  : biased;
    return __builtin_bit_cast(float, u | sign);
  }

 private:
  NEAP_HD static constexpr std::uint16_t encode(float x) {
    std::uint32_t const u = __builtin_bit_cast(std::uint32_t, x);
    std::uint32_t const sign = (u >> 16) & 0x8000u, rest = u & 0x7fffffffu;
    std::uint32_t const normal = (rest - (112u << 23) + 0xfffu + ((rest >> 13) & 1u)) >> 13;
    // Below 2^-14: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits.
    std::uint32_t const small =
        __builtin_bit_cast(std::uint32_t, __builtin_bit_cast(float, rest < (113u << 23) ? rest : 0u) + 0.5f) -
        (126u << 23);
    std::uint32_t const magnitude = rest > 0x7f800000u     ? 0x7e00u
                                    : rest >= 0x477ff000u  ? 0x7c00u
                                    : rest >= (113u << 23) ? normal
                                                           : small;
    return static_cast<std::uint16_t>(magnitude | sign);
  }
};

/// A type as a value, for generic lambdas: `with_type(t, [](auto tag) { using T = typename decltype(tag)::type; ... })`.
template <class T>
struct type_tag {
  using type = T;
};

namespace detail {
template <class T>
struct compute_type {
  using type = T;
};
template <>
struct compute_type<bf16> {
  using type = float;
};
template <>
struct compute_type<f16> {
  using type = float;
};
}  // namespace detail

/// What a kernel computes in: float for bf16, f16 and f32, double for f64; integers as they are.
template <class T>
using compute_t = typename detail::compute_type<T>::type;

/// The same of a floating dtype.
constexpr dtype computed_in(dtype t) { return t == dtype::f64 ? dtype::f64 : dtype::f32; }

/// Whether it is bf16 or f16, which kernels compute by way of f32.
constexpr bool is_low(dtype t) { return t == dtype::bf16 || t == dtype::f16; }

/// Says of a kernel that the host does not compute it in this type.
[[noreturn]] inline void refuse_on_host(std::string_view what, dtype t) {
  throw_error({what, ": the host computes in f32 and f64, not in ", name_of(t),
               ": cast it, or set_element(model, dtype::f32)"});
}

/// f(T{}) for kernels that compute in these types alone.
template <class F>
auto with_f32_or_f64(std::string_view what, dtype t, F&& f) {
  if (t == dtype::f32) return f(float{});
  if (t == dtype::f64) return f(double{});
  refuse_on_host(what, t);
}

/// The dtype of a C++ element type.
template <class T>
inline constexpr dtype dtype_of = std::is_same_v<T, double>         ? dtype::f64
                                  : std::is_same_v<T, float>        ? dtype::f32
                                  : std::is_same_v<T, bf16>         ? dtype::bf16
                                  : std::is_same_v<T, f16>          ? dtype::f16
                                  : std::is_same_v<T, std::int64_t> ? dtype::i64
                                  : std::is_same_v<T, std::int32_t> ? dtype::i32
                                  : std::is_same_v<T, std::uint8_t> ? dtype::u8
                                                                    : dtype::boolean;

/// Whether tensors have elements of a C++ type; dtype_of says boolean of others, too.
template <class T>
inline constexpr bool is_element = std::is_same_v<T, bool> || dtype_of<T> != dtype::boolean;

/// f(type_tag<T>) for a floating dtype; throws neap::error for others.
template <class F>
decltype(auto) with_floating(dtype t, F&& f) {
  switch (t) {
    case dtype::f64: return f(type_tag<double>{});
    case dtype::f32: return f(type_tag<float>{});
    case dtype::bf16: return f(type_tag<bf16>{});
    case dtype::f16: return f(type_tag<f16>{});
    default: throw_error({"no kernel computes in ", name_of(t), " here: a floating type is needed"});
  }
}

/// f(type_tag<T>) for every dtype kernels know; booleans are bool. Throws neap::error for the others.
template <class F>
decltype(auto) with_type(dtype t, F&& f) {
  switch (t) {
    case dtype::f64: return f(type_tag<double>{});
    case dtype::f32: return f(type_tag<float>{});
    case dtype::bf16: return f(type_tag<bf16>{});
    case dtype::f16: return f(type_tag<f16>{});
    case dtype::i64: return f(type_tag<std::int64_t>{});
    case dtype::i32: return f(type_tag<std::int32_t>{});
    case dtype::u8: return f(type_tag<std::uint8_t>{});
    case dtype::boolean: return f(type_tag<bool>{});
    default: throw_error({"no kernel computes in ", name_of(t)});
  }
}

}}  // namespace neap::v0
