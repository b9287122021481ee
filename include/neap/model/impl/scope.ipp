// The bodies of <neap/model/scope.hpp>.
#pragma once

#include <neap/model/scope.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC scope::~scope() {
  if (trace_) detail::leave_scope(*trace_);
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC name_scope::name_scope(std::string const& name) : trace_(context_access::trace()) {
  if (trace_) enter_name(*trace_, name);
}

NEAP_FUNC name_scope::~name_scope() {
  if (trace_) leave_scope(*trace_);
}

}  // namespace detail
}}  // namespace neap::v0
