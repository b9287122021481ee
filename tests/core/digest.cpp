#include <neap/core/digest.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <set>
#include <string>
#include <vector>

using namespace neap;

static_assert(digest{}.mix(1).mix(2) != digest{}.mix(2).mix(1));
static_assert(digest{}.mix(1) + digest{}.mix(2) == digest{}.mix(2) + digest{}.mix(1));
static_assert(digest{}.mix(1) + digest{}.mix(2) - digest{}.mix(2) == digest{}.mix(1));
static_assert(digest{}.mix("ab").mix("c") != digest{}.mix("a").mix("bc"));
static_assert(digest{}.mix("") != digest{});

TEST_CASE("small numbers, alone and in pairs and sums, do not collide, not even in half the bits") {
  std::set<std::uint64_t> low, high;
  std::size_t n = 0;
  for (std::uint64_t a = 0; a < 300; ++a)
    for (std::uint64_t b = 0; b < 300; ++b, ++n) {
      auto const d = digest{}.mix(a).mix(b);
      low.insert(d.low), high.insert(d.high);
    }
  CHECK(low.size() == n);
  CHECK(high.size() == n);
  std::set<digest> sums;
  for (std::uint64_t a = 0; a < 300; ++a)
    for (std::uint64_t b = 0; b <= a; ++b) sums.insert(digest{}.mix(a) + digest{}.mix(b));
  CHECK(sums.size() == 300 * 301 / 2);
}

TEST_CASE("every bit of the input changes about half of the digest after two steps") {
  for (int bit = 0; bit < 64; ++bit) {
    double flipped = 0;
    int const rounds = 200;
    for (int i = 0; i < rounds; ++i) {
      auto const x = scramble(static_cast<std::uint64_t>(i));
      auto const a = digest{}.mix(x).mix(7), b = digest{}.mix(x ^ std::uint64_t{1} << bit).mix(7);
      flipped += std::popcount(a.low ^ b.low) + std::popcount(a.high ^ b.high);
    }
    CAPTURE(bit);
    CHECK(flipped / rounds > 50);
    CHECK(flipped / rounds < 78);
  }
}

TEST_CASE("inputs that meet the inner multiplications' zeros do not make the digest forget what came before") {
  // low ^ x == 0 and high + x == 0 each silence one of the two products.
  digest const a = digest{}.mix(1), b = digest{}.mix(2);
  CHECK(a.mix(a.low) != b.mix(b.low));
  CHECK(a.mix(0 - a.high) != b.mix(0 - b.high));
  CHECK(a.mix(a.low) != a.mix(0 - a.high));
}

TEST_CASE("scramble is a bijection on what we try, and far from the identity") {
  std::set<std::uint64_t> met;
  for (std::uint64_t i = 0; i < 10000; ++i) met.insert(scramble(i));
  CHECK(met.size() == 10000);
}

TEST_CASE("hexadecimal digits and back") {
  CHECK(to_hex({0x0123456789abcdefull, 0xfedcba9876543210ull}) == "fedcba98765432100123456789abcdef");
  CHECK(to_hex({0, 0}) == std::string(32, '0'));
  digest d;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    auto const text = to_hex(d = d.mix(i));
    CHECK(from_hex(text) == d);
    auto wrong = text;
    wrong[i % 32] = "gGAF -x\0/:`"[i % 11];
    CHECK_FALSE(from_hex(wrong));
    CHECK_FALSE(from_hex(text.substr(0, i % 32)));
    CHECK_FALSE(from_hex(text + "0"));
  }
}
