// The bodies of <neap/core/text_part.hpp>.
#pragma once

#include <neap/core/text_part.hpp>

#include <neap/core/separate_compilation.hpp>

#include <charconv>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void text_part::append_to(std::string& s) const {
  switch (kind_) {
    case kind::none: break;
    case kind::text: s.append(text_, size_); break;
    case kind::letter: s += static_cast<char>(integer_); break;
    case kind::integer: s += std::to_string(integer_); break;
    case kind::natural: s += std::to_string(static_cast<std::uint64_t>(integer_)); break;
    case kind::real: {
      char digits[32];  // the shortest text of this number takes 24
      s.append(digits, std::to_chars(digits, digits + sizeof digits, real_).ptr);
      break;
    }
    case kind::object: s += write_(object_); break;
  }
}

NEAP_FUNC std::string text_of(std::initializer_list<text_part> parts) {
  std::string text;
  for (auto const& x : parts) x.append_to(text);
  return text;
}

}}}  // namespace neap::v0::detail
