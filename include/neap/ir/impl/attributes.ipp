// The bodies of <neap/ir/attributes.hpp>.
#pragma once

#include <neap/ir/attributes.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC attribute_value attribute_field::get(void const* op) const {
  using enum detail::member_form;
  void const* const p = at(const_cast<void*>(op));
  auto const integer = [](auto x) { return static_cast<std::int64_t>(x); };
  switch (form) {
    case boolean: return *static_cast<bool const*>(p);
    case i8: return integer(detail::read_member<std::int8_t>(p));
    case u8: return integer(detail::read_member<std::uint8_t>(p));
    case i16: return integer(detail::read_member<std::int16_t>(p));
    case u16: return integer(detail::read_member<std::uint16_t>(p));
    case i32: return integer(detail::read_member<std::int32_t>(p));
    case u32: return integer(detail::read_member<std::uint32_t>(p));
    case i64: return integer(detail::read_member<std::int64_t>(p));
    case u64: return integer(detail::read_member<std::uint64_t>(p));
    case f32: return static_cast<double>(*static_cast<float const*>(p));
    case f64: return *static_cast<double const*>(p);
    case element: return *static_cast<dtype const*>(p);
    case dims: return *static_cast<extents const*>(p);
    case program: break;
  }
  return *static_cast<element_program const*>(p);
}

NEAP_FUNC void attribute_field::set(void* op, attribute_value const& v) const {
  using enum detail::member_form;
  void* const p = at(op);
  auto const integer = [&v] { return std::get<std::int64_t>(v); };
  switch (form) {
    case boolean: *static_cast<bool*>(p) = std::get<bool>(v); break;
    case i8: detail::write_member<std::int8_t>(p, integer()); break;
    case u8: detail::write_member<std::uint8_t>(p, integer()); break;
    case i16: detail::write_member<std::int16_t>(p, integer()); break;
    case u16: detail::write_member<std::uint16_t>(p, integer()); break;
    case i32: detail::write_member<std::int32_t>(p, integer()); break;
    case u32: detail::write_member<std::uint32_t>(p, integer()); break;
    case i64: detail::write_member<std::int64_t>(p, integer()); break;
    case u64: detail::write_member<std::uint64_t>(p, integer()); break;
    case f32: *static_cast<float*>(p) = static_cast<float>(std::get<double>(v)); break;
    case f64: *static_cast<double*>(p) = std::get<double>(v); break;
    case element: *static_cast<dtype*>(p) = std::get<dtype>(v); break;
    case dims: *static_cast<extents*>(p) = std::get<extents>(v); break;
    case program: *static_cast<element_program*>(p) = std::get<element_program>(v); break;
  }
}

}}  // namespace neap::v0
