// A text as JSON writes it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace neap { inline namespace v0 { namespace detail {

/// In quotes, with escapes for what cannot stand there: one line, whatever the text holds.
inline std::string json_text(std::string_view s) {
  std::string out;
  out.reserve(s.size() + 2);
  out += '"';
  std::size_t plain = 0;  // from here on nothing is written yet
  for (std::size_t i = 0; i < s.size(); ++i) {
    auto const u = static_cast<unsigned char>(s[i]);
    if (u >= 0x20 && u != '"' && u != '\\') continue;
    out.append(s, plain, i - plain);
    plain = i + 1;
    out += '\\';
    char code[8];
    if (u < 0x20) std::snprintf(code, sizeof code, "u%04x", u), out += code;
    else out += s[i];
  }
  out.append(s, plain);
  out += '"';
  return out;
}

}}}  // namespace neap::v0::detail
