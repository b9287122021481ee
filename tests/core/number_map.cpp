#include <neap/core/number_map.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <map>

using namespace neap;

TEST_CASE("a number map does what std::map does, over random adds and sets") {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    random_stream draw{seed, 0};
    number_map m;
    std::map<std::uint64_t, std::uint32_t> expected;
    // few keys and many, near one another and far apart
    std::uint32_t const keys = 1 + draw.below(seed % 3 ? 40 : 3000);
    std::uint64_t const stride = seed % 2 ? 1 : 0x100000000ull;
    for (int i = 0; i < 2000; ++i) {
      std::uint64_t const key = draw.below(keys) * stride;
      auto const number = static_cast<std::uint32_t>(draw.below(number_map::none));
      if (draw.below(2)) {
        REQUIRE(m.add(key, number) == expected.emplace(key, number).second);
      } else {
        m.set(key, number);
        expected[key] = number;
      }
      std::uint64_t const other = draw.below(keys + 3) * stride;
      auto const it = expected.find(other);
      REQUIRE(m.find(other) == (it == expected.end() ? number_map::none : it->second));
      REQUIRE(m.contains(other) == (it != expected.end()));
    }
    REQUIRE(m.size() == expected.size());
    for (auto const& [key, number] : expected) REQUIRE(m.find(key) == number);
    m.clear();
    REQUIRE(m.size() == 0);
    for (auto const& [key, number] : expected) REQUIRE(!m.contains(key));
    REQUIRE(m.add(3, 4));
    REQUIRE(m.find(3) == 4);
  }
}

TEST_CASE("addresses are keys, too, and an empty map has none") {
  int a[100];
  number_map m;
  CHECK(m.find(a) == number_map::none);
  CHECK(!m.contains(a + 1));
  for (std::uint32_t i = 0; i < 100; ++i) CHECK(m.add(a + i, i));
  for (std::uint32_t i = 0; i < 100; ++i) {
    CHECK(!m.add(a + i, 7));
    CHECK(m.find(a + i) == i);
  }
}
