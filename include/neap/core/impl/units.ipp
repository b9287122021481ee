// The bodies of <neap/core/units.hpp>.
#pragma once

#include <neap/core/units.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void refuse_overflow() { throw error("size overflows 64 bits"); }

}  // namespace detail
}}  // namespace neap::v0
