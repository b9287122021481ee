// How often a text stands in another one.
#pragma once

#include <cstddef>
#include <string>

namespace neap::testing {

inline std::size_t count(std::string const& text, std::string const& what) {
  std::size_t n = 0;
  for (auto i = text.find(what); i != text.npos; i = text.find(what, i + 1)) ++n;
  return n;
}

}  // namespace neap::testing
