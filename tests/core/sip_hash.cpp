#include <neap/core/sip_hash.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <set>
#include <string>
#include <utility>

using namespace neap;

static_assert(sip_hash(hash_key::of(1)).mix(2).finish() == sip_hash(hash_key::of(1)).mix(2).finish());

TEST_CASE("a hash depends on the key, on each word, on their order and number") {
  std::set<digest> all;
  std::size_t n = 0;
  auto const add = [&](sip_hash const& h) { all.insert(h.finish()), ++n; };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    hash_key const key = hash_key::of(seed);
    add(sip_hash(key));
    add(sip_hash(key).mix(0)), add(sip_hash(key).mix(0).mix(0)), add(sip_hash(key).mix(0).mix(1));
    add(sip_hash(key).mix(1).mix(0)), add(sip_hash(key).mix("a")), add(sip_hash(key).mix("b"));
    add(sip_hash(key).mix("ab").mix("c")), add(sip_hash(key).mix("a").mix("bc")), add(sip_hash(key).mix("123456789"));
    add(sip_hash(key).mix(std::string_view("a\0", 2)));
  }
  CHECK(all.size() == n);
}

TEST_CASE("a bit of a word changes about half of the hash's") {
  auto const key = hash_key::of(3);
  auto const one = sip_hash(key).mix(7).mix(8).finish();
  int bits = 0;
  for (int k = 0; k < 64; ++k) {
    auto const other = sip_hash(key).mix(7 ^ std::uint64_t{1} << k).mix(8).finish();
    bits += std::popcount(one.low ^ other.low) + std::popcount(one.high ^ other.high);
  }
  CHECK(bits > 60 * 64);
  CHECK(bits < 68 * 64);
}

TEST_CASE("drawn keys differ") {
  auto const a = hash_key::drawn(), b = hash_key::drawn();
  CHECK((a.low != b.low || a.high != b.high));
}
