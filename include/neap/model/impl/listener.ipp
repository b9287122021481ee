// The bodies of <neap/model/listener.hpp>.
#pragma once

#include <neap/model/listener.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {
namespace detail {

NEAP_FUNC computation_listener*& computation_listener::active() {
  thread_local computation_listener* current = nullptr;
  return current;
}

}  // namespace detail
}  // namespace neap::inline v0
