// An attribute's value as numbers, for digests, keys and signatures.
#pragma once

#include <neap/ir/attributes.hpp>

#include <bit>
#include <cstdint>
#include <variant>

namespace neap { inline namespace v0 { namespace detail {

/// Calls f(std::uint64_t) for a value's numbers in order: the rank and the axes of extents, the numbers of a program, the
/// bits of a floating-point number. Values of one type are equal if their numbers are.
template <class F>
void each_number(attribute_value const& v, F const& f) {
  if (auto const* e = std::get_if<extents>(&v)) {
    f(static_cast<std::uint64_t>(e->rank()));
    for (auto i : *e) f(static_cast<std::uint64_t>(i));
  } else if (auto const* program = std::get_if<element_program>(&v)) {
    for (auto i : program->numbers()) f(static_cast<std::uint64_t>(i));
  } else if (auto const* real = std::get_if<double>(&v)) {
    f(std::bit_cast<std::uint64_t>(*real));
  } else if (auto const* whole = std::get_if<std::int64_t>(&v)) {
    f(static_cast<std::uint64_t>(*whole));
  } else if (auto const* truth = std::get_if<bool>(&v)) {
    f(std::uint64_t{*truth});
  } else {
    f(static_cast<std::uint64_t>(std::get<dtype>(v)));
  }
}

}}}  // namespace neap::v0::detail
