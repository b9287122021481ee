#include <neap/core/union_find.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace neap;

TEST_CASE("joined elements have one representative, others have others") {
  random_stream draw(4);
  std::uint32_t const n = 60;
  union_find sets;
  sets.grow(n / 2), sets.grow(n);
  CHECK(sets.size() == n);
  std::vector<std::uint32_t> label(n);
  for (std::uint32_t i = 0; i < n; ++i) label[i] = i;
  for (int k = 0; k < 50; ++k) {
    auto const a = draw.below(n), b = draw.below(n);
    auto const r = sets.join(a, b);
    CHECK((r == sets.find(a) && r == sets.find(b)));
    auto const old = label[b], now = label[a];
    std::ranges::replace(label, old, now);
    for (std::uint32_t i = 0; i < n; ++i) {
      CHECK((sets.find(i) == sets.find(a)) == (label[i] == label[a]));
      CHECK(sets.size_of(i) == static_cast<std::uint32_t>(std::ranges::count(label, label[i])));
    }
  }
}
