#include <neap/core/byte_block.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

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

TEST_CASE("blocks of all sizes are aligned, apart, and released by whoever has them last") {
  std::vector<byte_block> all;
  auto const filled = [](byte_block const& b, std::byte with) {
    for (std::size_t i = 0; i < b.bytes(); ++i)
      if (b.data()[i] != with) return false;
    return true;
  };
  for (std::size_t alignment : {1u, 16u, 64u, 256u})
    for (std::size_t bytes : {0u, 1u, 4u, 63u, 64u, 65u, 500u, 959u, 960u, 961u, 5000u}) {
      byte_block b(bytes, alignment);
      CHECK(reinterpret_cast<std::uintptr_t>(b.data()) % alignment == 0);
      CHECK(b.bytes() == bytes);
      CHECK(b.data() != nullptr);
      if (bytes > 0) std::memset(b.data(), static_cast<int>(all.size()), bytes);
      all.push_back(std::move(b));
    }
  for (std::size_t k = 0; k < all.size(); ++k) CHECK(filled(all[k], static_cast<std::byte>(k)));
  for (std::size_t k = 0; k + 1 < all.size(); k += 2) {  // a small one for a large one, and the other way round
    all[k] = std::exchange(all[k + 1], byte_block());
    CHECK(filled(all[k], static_cast<std::byte>(k + 1)));
  }
}
