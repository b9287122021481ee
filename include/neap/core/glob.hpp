// Patterns of names, in which * stands for any characters: "*.bias", "layers.*.up.weight".
#pragma once

#include <cstddef>
#include <string_view>

namespace neap { inline namespace v0 { namespace detail {

/// Whether a name matches a pattern. O(pattern * name) at worst.
inline bool matches(std::string_view pattern, std::string_view path) {
  std::size_t p = 0, t = 0, star = pattern.npos, from = 0;
  while (t < path.size()) {
    if (p < pattern.size() && pattern[p] == '*') star = p++, from = t;
    else if (p < pattern.size() && pattern[p] == path[t]) ++p, ++t;
    else if (star != pattern.npos) p = star + 1, t = ++from;
    else return false;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}}}  // namespace neap::v0::detail
