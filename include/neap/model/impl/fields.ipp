// The bodies of <neap/model/fields.hpp>.
#pragma once

#include <neap/model/fields.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::string join_path(std::string const& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}
NEAP_FUNC std::string join_path(std::string const& path, std::size_t number) {
  return join_path(path, std::to_string(number));
}

}  // namespace detail
}}  // namespace neap::v0
