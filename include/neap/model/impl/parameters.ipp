// The bodies of <neap/model/parameters.hpp>.
#pragma once

#include <neap/model/parameters.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {
namespace detail {

NEAP_FUNC void tensor_visitor::enter(void const* address, void const* type, std::string const& path) const {
  if (object) object(f, address, type, path);
}

NEAP_FUNC void absent_parts::add(std::string const& path, char const* what) {
  text += (text.empty() ? "" : ", ") + (path.empty() ? "it" : path) + what;
}

}  // namespace detail
}  // namespace neap::inline v0
