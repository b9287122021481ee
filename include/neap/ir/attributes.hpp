// The attributes of operators: named data members that text, digests and reports read and write.
#pragma once

#include <neap/core/tensor_type.hpp>
#include <neap/ir/element_program.hpp>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <variant>

namespace neap { inline namespace v0 {

/// An attribute's value as the text form, the digest and the reports see it.
using attribute_value = std::variant<bool, std::int64_t, double, dtype, extents, element_program>;

namespace detail {
/// How a data member lies in memory.
enum class member_form : std::uint8_t {
  boolean,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f32,
  f64,
  element,
  dims,
  program
};

template <class T>
constexpr member_form form_of() {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, dtype>) {
    return form_of<std::underlying_type_t<T>>();
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr int size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 2 : sizeof(T) == 4 ? 4 : 6;
    return static_cast<member_form>(static_cast<int>(member_form::i8) + size + (std::is_signed_v<T> ? 0 : 1));
  } else {
    constexpr bool known = std::is_same_v<T, bool> || std::is_same_v<T, float> || std::is_same_v<T, double> ||
                           std::is_same_v<T, dtype> || std::is_same_v<T, extents> || std::is_same_v<T, element_program>;
    static_assert(known, "neap: an attribute is a bool, an integer, an enumeration, float, double, dtype or extents");
    return std::is_same_v<T, bool>      ? member_form::boolean
           : std::is_same_v<T, float>   ? member_form::f32
           : std::is_same_v<T, double>  ? member_form::f64
           : std::is_same_v<T, dtype>   ? member_form::element
           : std::is_same_v<T, extents> ? member_form::dims
                                        : member_form::program;
  }
}

template <class T>
T read_member(void const* at) {
  T x;
  std::memcpy(&x, at, sizeof(T));
  return x;
}
template <class T>
void write_member(void* at, std::int64_t value) {
  auto const x = static_cast<T>(value);
  std::memcpy(at, &x, sizeof(T));
}
}  // namespace detail

/// A named data member of an operator.
struct attribute_field {
  std::string_view name;
  void* (*at)(void* op);  // where the member is
  detail::member_form form;

  attribute_value get(void const* op) const;
  /// Throws std::bad_variant_access if the type differs.
  void set(void* op, attribute_value const& v) const;
};

namespace detail {
template <class M>
struct member_of;
template <class C, class T>
struct member_of<T C::*> {
  using object = C;
  using type = T;
};
template <auto Member>
void* member_at(void* op) {
  return &(static_cast<typename member_of<decltype(Member)>::object*>(op)->*Member);
}
}  // namespace detail

/// The field for a member: `field<&matmul::transpose_a>("transpose_a")`. Members may be bool, integers, enumerations,
/// float, double, dtype, extents or element_program.
template <auto Member>
constexpr attribute_field field(std::string_view name) {
  return {name, &detail::member_at<Member>, detail::form_of<typename detail::member_of<decltype(Member)>::type>()};
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/attributes.ipp>
#endif
