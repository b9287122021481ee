// The arena: the one block of memory that a planned step runs in. It is taken once; nothing is taken while steps run.
#pragma once

#include <neap/core/byte_block.hpp>
#include <neap/core/error.hpp>
#include <neap/core/units.hpp>

#include <cstddef>
#include <new>

namespace neap { inline namespace v0 {

/// A block of bytes on the host, aligned to 4096 bytes, owned.
class arena {
 public:
  arena() = default;
  /// Throws neap::error where the system has not so much memory.
  explicit arena(bytes_t bytes);
  std::byte* data() const { return block_.data(); }
  bytes_t bytes() const { return static_cast<bytes_t>(block_.bytes()); }

 private:
  byte_block block_;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/execute/impl/arena.ipp>
#endif
