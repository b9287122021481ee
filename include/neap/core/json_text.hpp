// A text as JSON writes it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace neap::inline v0::detail {

/// In quotes, with escapes for what cannot stand there: one line, whatever the text holds.
inline std::string json_text(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    auto const u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", u);
      out += code;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace neap::inline v0::detail
