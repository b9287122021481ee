#include <neap/memory/exact/fillers.hpp>

#include "brute_force.hpp"

#include "../support/packings.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

TEST_CASE("with its fillers every moment from the first to the last is full") {
  std::mt19937_64 rng(17);
  int filled = 0;
  for (int round = 0; round < 2000; ++round) {
    auto const records = random_records(rng, {});
    memory_problem const p(records);
    auto const capacity = load_of(records) + static_cast<std::int64_t>(rng() % 3);
    auto const fillers = detail::fillers_of(p, capacity);
    std::int64_t first = 100, last = -1;
    for (std::size_t i = 0; i < p.count(); ++i)
      if (p.occupies(i)) first = std::min(first, p.lower[i]), last = std::max(last, p.upper[i]);
    for (auto t = first - 1; t <= last; ++t) {
      std::int64_t load = 0;
      for (std::size_t i = 0; i < p.count(); ++i)
        if (p.lower[i] <= t && t < p.upper[i]) load += p.size[i];
      for (auto const& x : fillers)
        if (x.lower <= t && t < x.upper) load += x.size;
      CAPTURE(round);
      CAPTURE(t);
      REQUIRE(load == (first <= t && t < last ? capacity : 0));
    }
    for (auto const& x : fillers) REQUIRE((x.size > 0 && x.lower < x.upper));
    filled += !fillers.empty();
  }
  CHECK(filled > 1000);
}

TEST_CASE("a record left out of a full packing is its filler") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto given = testing::planted({testing::pattern::guillotine, 20, 12, 1000, 0}, seed).records;
    REQUIRE(detail::fillers_of(given, 1000).empty());
    auto const left_out = given.back();
    given.pop_back();
    auto const fillers = detail::fillers_of(given, 1000);
    REQUIRE(fillers.size() == 1);
    CHECK(fillers[0].lower == left_out.lower);
    CHECK(fillers[0].upper == left_out.upper);
    CHECK(fillers[0].size == left_out.size);
  }
}

TEST_CASE("a fall ends the fewest that are together as large, and what is too much begins anew") {
  auto const fillers = [](std::vector<usage_record> const& records) {
    std::vector<std::vector<std::int64_t>> all;
    for (auto const& x : detail::fillers_of(records, 10)) all.push_back({x.lower, x.upper, x.size});
    std::sort(all.begin(), all.end());
    return all;
  };
  using list = std::vector<std::vector<std::int64_t>>;
  auto const record = [](std::int64_t lower, std::int64_t upper, std::int64_t size) {
    return usage_record{.lower = lower, .upper = upper, .size = size};
  };
  // Free: 0, then 3, then 3 + 2, then 2, then 0.
  CHECK(fillers({record(0, 1, 3), record(0, 2, 2), record(0, 4, 5), record(3, 4, 3), record(4, 5, 10)}) ==
        list{{1, 3, 3}, {2, 4, 2}});
  // Free: 5, then 2, then 0: no filler is as large as the first fall.
  CHECK(fillers({record(0, 3, 5), record(1, 3, 3), record(2, 3, 2)}) == list{{0, 1, 5}, {1, 2, 2}});
}
