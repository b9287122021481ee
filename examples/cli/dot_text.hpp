// Text inside a Graphviz file.
#pragma once

#include <neap/report/svg.hpp>

#include <string>
#include <string_view>

namespace neap { inline namespace v0 { namespace detail {

/// A label in quotes, which no name can leave.
inline std::string dot_quoted(std::string_view s) {
  std::string q = "\"";
  for (std::size_t i = 0; i < s.size();) {
    auto const n = character_length(s, i);
    char const c = s[i];
    if (c == '"' || c == '\\') q += '\\';
    if (n == 0) q += '?';
    else if (n == 1) q += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    else q += s.substr(i, n);
    i += n ? n : 1;
  }
  return q + "\"";
}

}}}  // namespace neap::v0::detail
