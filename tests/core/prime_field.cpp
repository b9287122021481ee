#include <neap/core/prime_field.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <set>

using namespace neap;

TEST_CASE("floating-point numbers are what they are exactly") {
  std::set<std::uint64_t> primes;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    prime_field const f(hash_key::of(seed));
    primes.insert(f.prime());
    CHECK((f.prime() >> 60) == 1);
    auto const n = [&](double x) { return f.of(x); };
    CHECK(f.add(n(0.5), n(0.5)) == n(1));
    CHECK(n(1) == f.one());
    CHECK(n(0) == f.zero());
    CHECK(n(-0.0) == f.zero());
    CHECK(f.mul(n(0.375), n(-8)) == n(-3));
    CHECK(f.mul(n(3), f.inverse(n(4))) == n(0.75));
    CHECK(f.mul(n(1e300), n(0)) == n(0));
    CHECK(f.sub(n(2), n(5)) == f.neg(n(3)));
    CHECK(!(f.mul(n(0.1), n(0.3)) == n(0.03)));  // no double is 0.1 * 0.3
    CHECK(f.mul(n(5e-324), n(0x1p1000)) == n(0x1p-74));
    CHECK(f.mul(n(0x1p1023), n(0x1p-1022)) == n(2));
    CHECK(f.of(std::uint64_t{1} << 40) == n(0x1p40));
    CHECK(f.inverse(f.zero()) == f.zero());
    for (double other : {0x1p61, 0x1p-61, 0x1p122, 0x1p60, -1.0}) CHECK(!(n(1) == n(other)));
  }
  CHECK(primes.size() == 20);
}

TEST_CASE("products agree with 128-bit arithmetic") {
  prime_field const f(hash_key::of(5));
  auto const p = f.prime();
  for (std::uint64_t k = 0; k < 1000; ++k) {
    auto const a = sip_hash(hash_key::of(k)).mix(1).word() % p, b = sip_hash(hash_key::of(k)).mix(2).word() % p;
    CHECK(f.mul(f.of(a), f.of(b)) == f.of(static_cast<std::uint64_t>(static_cast<uint128>(a) * b % p)));
    CHECK(f.mul(f.of(a), f.inverse(f.of(a))) == f.one());
  }
}
