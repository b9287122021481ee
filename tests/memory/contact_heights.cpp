#include <neap/memory/exact/contact_heights.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <vector>

using namespace neap;

TEST_CASE("sums are all sums of some of the sizes, ascending, each once") {
  std::mt19937_64 rng(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> sums{0}, sizes;
    for (auto n = rng() % 7; n > 0; --n) {
      sizes.push_back(1 + static_cast<int>(rng() % 9));
      detail::add_to_sums(sums, sizes.back());
    }
    std::vector<char> is_sum(64, 0);
    for (unsigned mask = 0; mask < 1u << sizes.size(); ++mask) {
      std::size_t sum = 0;
      for (std::size_t i = 0; i < sizes.size(); ++i)
        if (mask >> i & 1) sum += static_cast<std::size_t>(sizes[i]);
      is_sum[sum] = 1;
    }
    std::vector<std::int64_t> expected;
    for (int x = 0; x < 64; ++x)
      if (is_sum[static_cast<std::size_t>(x)]) expected.push_back(x);
    REQUIRE(sums == expected);
  }
}

TEST_CASE("the least height that both sides can have") {
  std::mt19937_64 rng(2);
  int none = 0;
  for (int round = 0; round < 2000; ++round) {
    auto const draw = [&](int n) { return static_cast<int>(rng() % static_cast<unsigned>(n)); };
    std::vector<std::int64_t> a{0}, b{0};
    for (int n = draw(3); n > 0; --n) detail::add_to_sums(a, 1 + draw(9));
    for (int n = draw(3); n > 0; --n) detail::add_to_sums(b, 1 + draw(9));
    detail::contact_side const x{draw(12), draw(3), a}, y{draw(12), draw(3), b};
    auto const has = [](detail::contact_side const& side, std::int64_t height) {
      for (auto s : side.sums)
        if (side.floor + s <= height && height <= side.floor + s + side.waste) return true;
      return false;
    };
    int least = -1;
    for (int h = 0; h < 80 && least < 0; ++h)
      if (has(x, h) && has(y, h)) least = h;
    REQUIRE(detail::least_contact_height(x, y, -1) == least);
    none += least < 0;
  }
  CHECK(none > 100);
}
