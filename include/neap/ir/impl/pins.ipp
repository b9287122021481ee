// The bodies of <neap/ir/pins.hpp>.
#pragma once

#include <neap/ir/pins.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::optional<pin> pin_of(std::string_view name) {
  for (std::size_t i = 0; i < pin_names.size(); ++i)
    if (pin_names[i] == name) return static_cast<pin>(1u << i);
  return std::nullopt;
}

NEAP_FUNC std::string to_string(pin_set pins) {
  std::string s;
  for (std::size_t i = 0; i < pin_names.size(); ++i)
    if (pins.has(static_cast<pin>(1u << i))) s += (s.empty() ? "" : ", ") + std::string(pin_names[i]);
  return s;
}

}}  // namespace neap::v0
