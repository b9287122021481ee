#include <neap/core/bit_set.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <set>
#include <vector>

using namespace neap;

TEST_CASE("a bit set is a set of small numbers") {
  random_stream draw(2);
  for (std::size_t n : {0, 1, 63, 64, 65, 200}) {
    bit_set a(n), b(n);
    std::set<std::size_t> x, y;
    for (std::size_t i = 0; i < n; ++i) {
      if (draw.below(3) == 0) CHECK(a.insert(i) == x.insert(i).second);
      if (draw.below(3) == 0) b.set(i), y.insert(i);
    }
    for (auto i : x) CHECK_FALSE(a.insert(i));
    CHECK(a.size() == n);
    CHECK(a.count() == x.size());
    std::vector<std::size_t> listed;
    a.for_each([&](std::size_t i) { listed.push_back(i); });
    CHECK(listed == std::vector<std::size_t>(x.begin(), x.end()));
    auto both = a, either = a;
    both &= b, either |= b;
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(a.test(i) == (x.count(i) == 1));
      CHECK(both.test(i) == (x.count(i) && y.count(i)));
      CHECK(either.test(i) == (x.count(i) || y.count(i)));
    }
    for (auto i : x) a.reset(i);
    CHECK(a == bit_set(n));
    b.clear();
    CHECK(b == bit_set(n));
  }
}
