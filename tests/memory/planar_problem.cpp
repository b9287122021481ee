#include <neap/memory/guess/planar_problem.hpp>

#include "../support/packings.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

neap::detail::packing_problem packed(std::vector<usage_record> const& records) {
  std::vector<std::uint32_t> order(records.size());
  std::iota(order.begin(), order.end(), 0u);
  return neap::detail::packing_problem_of(records, order, 1);
}

}  // namespace

TEST_CASE("boundaries forth and back: what ends fills what begins, to the byte, with the free bytes") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto const p = planted({static_cast<pattern>(seed % 4), 40, 12, 900, seed % 3 == 0 ? 0.0 : 0.05}, seed);
    auto const records = packed(p.records);
    neap::detail::planar_problem problem(records);
    if (!problem.read(p.capacity)) continue;
    for (std::size_t direction = 0; direction < 2; ++direction) {
      std::int64_t before = 0;
      std::size_t begun = 0;
      for (std::uint32_t s = 0; s < problem.sections(); ++s) {
        auto const& b = problem.boundary(direction, s);
        std::int64_t ended = 0, begins = 0;
        for (auto i : b.ending) {
          ended += records.size[i];
          REQUIRE(problem.end_of(direction, i) == s);
        }
        for (auto i : b.beginning) {
          begins += records.size[i];
          REQUIRE(problem.begin_of(direction, i) == s);
        }
        begun += b.beginning.size();
        if (s == 0) REQUIRE(begins + b.free == p.capacity);
        else REQUIRE(ended + before == begins + b.free);
        if (s > 0) REQUIRE(b.rises == std::max<std::int64_t>(0, b.free - before));
        if (s + 1 < problem.sections())
          REQUIRE(b.falls == std::max<std::int64_t>(0, b.free - problem.boundary(direction, s + 1).free));
        before = b.free;
      }
      CHECK(begun == records.count());
      auto starts = problem.inner_starts(direction);
      REQUIRE(!starts.empty());
      bool full = true;  // first those without free bytes
      for (auto s : starts) {
        bool const here = problem.boundary(direction, s).free == 0;
        REQUIRE((full || !here));
        full = here;
      }
      std::sort(starts.begin(), starts.end());
      CHECK(std::adjacent_find(starts.begin(), starts.end()) == starts.end());
    }
  }
}

TEST_CASE("sums of a boundary: of every set of what begins, and the same by count") {
  auto const p = planted({pattern::guillotine, 40, 8, 900, 0}, 3);
  auto const records = packed(p.records);
  neap::detail::planar_problem problem(records);
  REQUIRE(problem.read(p.capacity));
  int checked = 0;
  for (std::uint32_t s = 0; s < problem.sections(); ++s) {
    auto& b = problem.boundary(0, s);
    if (b.beginning.size() > 10) continue;
    b.sum_up(records);
    std::size_t counted = 0;
    for (auto const& in : b.by_count) counted += static_cast<std::size_t>(in.end() - in.begin());
    CHECK(counted == (std::size_t{1} << b.beginning.size()));
    REQUIRE(static_cast<std::size_t>(b.sums.end() - b.sums.begin()) == counted);
    for (auto const& x : b.sums) {
      std::int64_t sum = 0;
      for (std::size_t k = 0; k < b.beginning.size(); ++k)
        if (x.set >> k & 1) sum += records.size[b.beginning[k]];
      REQUIRE(x.sum == sum);
      ++checked;
    }
  }
  CHECK(checked > 20);
}

TEST_CASE("problems that are not for planar searches: overfull, mostly free, of one section, aligned or fixed") {
  std::vector<usage_record> records{{.lower = 0, .upper = 2, .size = 30}, {.lower = 1, .upper = 3, .size = 40}};
  auto const reads = [&](std::int64_t capacity) {
    auto const packing = packed(records);
    return neap::detail::planar_problem(packing).read(capacity);
  };
  CHECK(!reads(69));
  CHECK(!reads(700));
  CHECK(!reads(70));  // the ends are half empty
  records.push_back({.lower = 0, .upper = 1, .size = 40}), records.push_back({.lower = 2, .upper = 3, .size = 30});
  CHECK(reads(70));
  records[0].alignment = 7;
  CHECK(!reads(70));
  records[0].alignment = 1, records[0].offset = 0;
  CHECK(!reads(70));
  records = {{.lower = 0, .upper = 1, .size = 70}};
  CHECK(!reads(70));
}
