#include <neap/memory/forms/dynamic.hpp>

#include <neap/memory/check/check.hpp>
#include <neap/memory/exact/exact.hpp>

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

using namespace neap;

namespace {

std::vector<usage_record> at(std::vector<dynamic_record> const& records, std::int64_t symbol, std::int64_t alignment) {
  std::vector<usage_record> fixed;
  for (auto const& r : records)
    fixed.push_back({.lower = r.lower, .upper = r.upper, .size = r.size(symbol), .alignment = alignment});
  return fixed;
}

constexpr std::array<dynamic_record, 2> two{{{0, 2, {0, 4}}, {1, 3, {8, 0}}}};
static_assert(plan_dynamic(two, 1, 9).arena_bytes(5) == 28);

}  // namespace

TEST_CASE("one layout is right at every symbol of the range, and near the bound at its ends") {
  std::mt19937_64 rng(31);
  int at_bound = 0;
  for (int round = 0; round < 300; ++round) {
    std::int64_t const first = 1 + static_cast<std::int64_t>(rng() % 4),
                       last = first + static_cast<std::int64_t>(rng() % 40);
    std::int64_t const alignment = round % 2 ? 1 : 8;
    std::vector<dynamic_record> records(1 + rng() % 20);
    for (auto& r : records) {
      r.lower = static_cast<std::int64_t>(rng() % 12);
      r.upper = r.lower + 1 + static_cast<std::int64_t>(rng() % 6);
      r.size = {static_cast<std::int64_t>(rng() % 50), static_cast<std::int64_t>(rng() % 9)};
      if (rng() % 5 == 0) r.size.base = 9 * last, r.size.slope = -static_cast<std::int64_t>(rng() % 9);
    }
    auto const plan = plan_dynamic(records, first, last, alignment);
    REQUIRE(plan.why.empty());
    for (auto s = first; s <= last; ++s) {
      auto const fixed = at(records, s, alignment);
      memory_plan one;
      one.arena_bytes = plan.arena_bytes(s);
      for (std::size_t i = 0; i < records.size(); ++i) one.offsets.push_back(plan.offset(i, s));
      REQUIRE_MESSAGE(verify(fixed, one).ok(), verify(fixed, one).message());
    }
    at_bound += plan.arena_at_first == plan.bound_at_first && plan.arena_at_last == plan.bound_at_last;
  }
  CHECK(at_bound > 100);
}

TEST_CASE("sizes in proportion to the batch give one layout that is optimal for every batch") {
  std::mt19937_64 rng(32);
  std::vector<dynamic_record> records;
  for (int i = 0; i < 30; ++i) records.push_back({i, 60 - i, {0, 64 * (1 + static_cast<std::int64_t>(rng() % 5))}});
  auto const plan = plan_dynamic(records, 1, 64, 64, exact{});
  for (std::int64_t batch = 1; batch <= 64; ++batch)
    CHECK(plan.arena_bytes(batch) == load_lower_bound(at(records, batch, 64)).bytes);
}

TEST_CASE("faults") {
  std::vector<dynamic_record> const shrinking{{0, 1, {10, -1}}};
  CHECK(plan_dynamic(shrinking, 1, 10).why.empty());
  CHECK(plan_dynamic(shrinking, 1, 11).why.message() == "record 0: its size is negative in the range, or beyond 2^56");
  CHECK(plan_dynamic(shrinking, 5, 4).why.message() == "the range of the symbol is empty or beyond 2^56");
}
