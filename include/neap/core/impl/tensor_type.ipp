// The bodies of <neap/core/tensor_type.hpp>.
#pragma once

#include <neap/core/tensor_type.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {
namespace detail {

NEAP_FUNC bool has_number(dtype t, double x) {
  double const low = t == dtype::i64 ? -0x1p63 : t == dtype::i32 ? -0x1p31 : 0;
  double const behind = t == dtype::i64 ? 0x1p63 : t == dtype::i32 ? 0x1p31 : t == dtype::boolean ? 2 : 256;
  return is_floating(t) || (x >= low && x < behind && x == static_cast<double>(static_cast<std::int64_t>(x)));
}

}  // namespace detail

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

}}  // namespace neap::v0
