#include <neap/core/sort.hpp>

#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

using namespace neap;

namespace {

constexpr std::array<int, 6> sorted_by_the_compiler() {
  std::array<int, 6> x{4, -1, 7, 4, 0, 2};
  detail::sort_list(x);
  return x;
}
static_assert(sorted_by_the_compiler() == std::array<int, 6>{-1, 0, 2, 4, 4, 7});

/// A key that many share, beside where it stood; of several sizes.
template <int Words>
struct element {
  std::uint32_t key = 0, at = 0, more[Words]{};
  friend bool operator==(element const&, element const&) = default;
};

template <int Words>
void sorts_as_the_standard(std::mt19937& rng, std::size_t n, std::uint32_t keys) {
  std::vector<element<Words>> list(n);
  for (std::size_t i = 0; i < n; ++i) {
    list[i].key = static_cast<std::uint32_t>(rng() % keys), list[i].at = static_cast<std::uint32_t>(i);
    for (auto& x : list[i].more) x = static_cast<std::uint32_t>(rng());
  }
  if (rng() % 4 == 0) std::stable_sort(list.begin(), list.end(), [](auto& a, auto& b) { return a.key < b.key; });
  auto expected = list;
  bool const down = rng() % 2;
  auto const before = [&](auto const& a, auto const& b) { return down ? b.key < a.key : a.key < b.key; };
  std::stable_sort(expected.begin(), expected.end(), before);
  detail::sort_list(list, before);
  REQUIRE(list == expected);
}

}  // namespace

TEST_CASE("plain data of any size is sorted as by std::stable_sort") {
  std::mt19937 rng(11);
  for (int round = 0; round < testing::cases(4000); ++round) {
    std::size_t const n = rng() % (round % 10 == 0 ? 3000 : 60);
    auto const keys = static_cast<std::uint32_t>(1 + rng() % (round % 2 ? 7 : 10'000));
    sorts_as_the_standard<1>(rng, n, keys);
    sorts_as_the_standard<2>(rng, n, keys);
    sorts_as_the_standard<5>(rng, n, keys);
    std::vector<std::int64_t> numbers(n);
    for (auto& x : numbers) x = static_cast<std::int64_t>(rng() % keys) - 3;
    auto expected = numbers;
    std::sort(expected.begin(), expected.end());
    detail::sort_list(numbers);
    REQUIRE(numbers == expected);
  }
}

TEST_CASE("what can only be moved is sorted as by std::stable_sort") {
  struct owner {
    std::uint32_t key = 0;
    std::unique_ptr<std::uint32_t> at;
  };
  std::mt19937 rng(12);
  for (int round = 0; round < testing::cases(1000); ++round) {
    std::size_t const n = rng() % (round % 10 == 0 ? 1000 : 40);
    auto const keys = static_cast<std::uint32_t>(1 + rng() % (round % 2 ? 7 : 10'000));
    std::vector<owner> list;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> expected;  // key, where it stood
    for (std::uint32_t i = 0; i < n; ++i) {
      auto const key = static_cast<std::uint32_t>(rng() % keys);
      list.push_back({key, std::make_unique<std::uint32_t>(i)}), expected.emplace_back(key, i);
    }
    bool const down = rng() % 2;
    auto const before = [&](std::uint32_t a, std::uint32_t b) { return down ? b < a : a < b; };
    std::stable_sort(expected.begin(), expected.end(), [&](auto& a, auto& b) { return before(a.first, b.first); });
    detail::sort_list(list, [&](owner const& a, owner const& b) { return before(a.key, b.key); });
    REQUIRE(list.size() == n);
    for (std::size_t i = 0; i < n; ++i) REQUIRE(std::pair{list[i].key, *list[i].at} == expected[i]);
  }
}
