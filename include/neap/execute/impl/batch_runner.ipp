// The bodies of <neap/execute/batch_runner.hpp>.
#pragma once

#include <neap/execute/batch_runner.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC bool lies_in(std::span<std::byte const> memory, void const* p) {
  return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(memory.data()) < memory.size();
}

}}}  // namespace neap::v0::detail
