// The bodies of <neap/capture/scalar_listener.hpp>.
#pragma once

#include <neap/capture/scalar_listener.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC scalar_listener*& scalar_listener::active() {
  thread_local scalar_listener* current = nullptr;
  return current;
}

}  // namespace detail
}}  // namespace neap::v0
