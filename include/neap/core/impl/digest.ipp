// The bodies of <neap/core/digest.hpp>.
#pragma once

#include <neap/core/digest.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::string to_hex(digest d) {
  std::string text(32, '0');
  for (std::size_t i = 0; i < 32; ++i)
    text[i] = "0123456789abcdef"[(i < 16 ? d.high : d.low) >> (60 - 4 * (i % 16)) & 15];
  return text;
}

NEAP_FUNC std::optional<digest> from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  digest d{0, 0};
  for (std::size_t i = 0; i < 32; ++i) {
    char const c = text[i];
    bool const is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return std::nullopt;
    auto& half = i < 16 ? d.high : d.low;
    half = half << 4 | static_cast<std::uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  return d;
}

}}  // namespace neap::v0
