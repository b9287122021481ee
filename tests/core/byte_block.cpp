#include <neap/core/byte_block.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>

using namespace neap;

TEST_CASE("a block of bytes is aligned, and has one owner") {
  byte_block none;
  CHECK(none.data() == nullptr);
  CHECK(none.bytes() == 0);
  byte_block a(100, 4096);
  auto* const at = a.data();
  CHECK(reinterpret_cast<std::uintptr_t>(at) % 4096 == 0);
  std::memset(at, 1, 100);
  byte_block b(static_cast<byte_block&&>(a));
  CHECK(a.data() == nullptr);
  CHECK(a.bytes() == 0);
  CHECK(b.bytes() == 100);
  CHECK(b.data() == at);
  a = byte_block(1, 64);
  CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
  a = static_cast<byte_block&&>(b);
  CHECK(a.data() == at);
  CHECK(b.data() == nullptr);
  CHECK(at[99] == std::byte{1});
}
