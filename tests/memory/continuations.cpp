#include <neap/memory/exact/continuations.hpp>

#include "brute_force.hpp"

#include "../support/packings.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

namespace {

using life = std::vector<std::int64_t>;  // lower, upper, size

std::vector<life> joined(std::vector<usage_record> const& records, std::int64_t capacity) {
  auto const out = detail::joined_by_size(records, detail::fillers_of(records, capacity), 1);
  std::vector<life> lives;
  for (std::size_t i = 0; i < out.records.count(); ++i)
    lives.push_back({out.records.lower[i], out.records.upper[i], out.records.size[i]});
  std::sort(lives.begin(), lives.end());
  return lives;
}
usage_record record(std::int64_t lower, std::int64_t upper, std::int64_t size) {
  return {.lower = lower, .upper = upper, .size = size};
}

}  // namespace

TEST_CASE("joined records hold those given one after the other, and nothing else but fillers") {
  std::mt19937_64 rng(3);
  int fewer = 0;
  for (int round = 0; round < 2000; ++round) {
    auto records = random_records(rng, {});
    auto const capacity = 97 * (load_of(records) + static_cast<std::int64_t>(rng() % 2));
    for (auto& r : records) r.size *= 97;  // few agree by chance as far as can be seen
    memory_problem const p(records);
    auto const fillers = rng() % 2 ? detail::fillers_of(p, capacity) : plain_vector<detail::filler>{};
    auto const out = detail::joined_by_size(p, fillers, 1);
    CAPTURE(round);
    auto const& q = out.records;
    REQUIRE(out.holder.size() == p.count());
    std::size_t occupying = fillers.size();
    for (std::size_t i = 0; i < p.count(); ++i) {
      if (!p.occupies(i)) continue;
      ++occupying;
      auto const h = out.holder[i];
      REQUIRE((q.lower[h] <= p.lower[i] && p.upper[i] <= q.upper[h] && q.size[h] == p.size[i]));
      for (std::size_t j = 0; j < i; ++j)
        if (p.occupies(j) && out.holder[j] == h) REQUIRE((p.upper[j] <= p.lower[i] || p.upper[i] <= p.lower[j]));
    }
    fewer += q.count() < occupying;
    for (std::int64_t t = 0; t < board::moments; ++t) {
      std::int64_t before = 0, after = 0;
      for (std::size_t i = 0; i < p.count(); ++i)
        if (p.occupies(i) && p.lower[i] <= t && t < p.upper[i]) before += p.size[i];
      for (auto const& x : fillers)
        if (x.lower <= t && t < x.upper) before += x.size;
      for (std::size_t i = 0; i < q.count(); ++i)
        if (q.lower[i] <= t && t < q.upper[i]) after += q.size[i];
      REQUIRE(before == after);
    }
  }
  CHECK(fewer > 200);
}

TEST_CASE("a chain of one size is one record; what may be explained otherwise stays apart") {
  CHECK(joined({record(0, 2, 700), record(2, 5, 700), record(5, 6, 700)}, 700) == std::vector<life>{{0, 6, 700}});
  // Two of one size: either may continue either.
  CHECK(joined({record(0, 2, 700), record(0, 2, 700), record(2, 5, 700), record(2, 4, 700), record(4, 5, 700)}, 1400)
            .size() == 4);
  // Sizes so few that equal ones say nothing.
  CHECK(joined({record(0, 2, 3), record(0, 2, 4), record(2, 5, 4), record(2, 5, 3)}, 7).size() == 4);
  CHECK(joined({record(0, 2, 3001), record(0, 2, 4003), record(2, 5, 4003), record(2, 5, 3001)}, 7004).size() == 2);
}

TEST_CASE("a continuation is found beside records that end and begin alone") {
  auto const out = detail::joined_by_size(
      std::vector{record(0, 3, 5000), record(0, 3, 17), record(3, 6, 5000), record(3, 6, 23)}, {}, 1);
  CHECK(out.holder[0] == out.holder[2]);
  CHECK(out.holder[1] != out.holder[3]);
}
