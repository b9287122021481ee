// The bodies of <neap/execute/arena.hpp>.
#pragma once

#include <neap/execute/arena.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC arena::arena(bytes_t bytes) {
  if (bytes == 0) return;
  try {
    block_ = byte_block(static_cast<std::size_t>(bytes), 4096);
  } catch (std::bad_alloc const&) { throw_error({"arena: the system does not give ", bytes, " bytes"}); }
}

}}  // namespace neap::v0
