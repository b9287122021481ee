// The bodies of <neap/core/error.hpp>.
#pragma once

#include <neap/core/error.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC error::error(std::source_location at, std::string_view what)
    : std::runtime_error(place(at) + std::string(what)) {}

NEAP_FUNC std::string error::place(std::source_location at) {
  if (at.line() == 0) return {};
  std::string_view file = at.file_name();
  if (auto slash = file.find_last_of('/'); slash != file.npos) file.remove_prefix(slash + 1);
  return std::string(file) + ":" + std::to_string(at.line()) + ": ";
}

NEAP_FUNC void throw_error(std::initializer_list<detail::text_part> parts) { throw error(detail::text_of(parts)); }

NEAP_FUNC void throw_error(std::source_location at, std::initializer_list<detail::text_part> parts) {
  throw error(at, detail::text_of(parts));
}

}}  // namespace neap::v0
