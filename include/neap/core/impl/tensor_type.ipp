// The bodies of <neap/core/tensor_type.hpp>.
#pragma once

#include <neap/core/tensor_type.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {

NEAP_FUNC std::string to_string(extents const& s) {
  std::string text = "[";
  for (int i = 0; i < s.rank(); ++i) {
    if (i) text += ',';
    text += std::to_string(s[i]);
  }
  text += ']';
  return text;
}

NEAP_FUNC std::string to_string(tensor_type const& t) { return std::string(name_of(t.element)) + to_string(t.dims); }

}  // namespace neap::inline v0
