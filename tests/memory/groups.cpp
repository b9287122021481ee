#include <neap/memory/forms/groups.hpp>

#include <neap/memory/check/check.hpp>
#include <neap/memory/exact/exact.hpp>

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

using namespace neap;

namespace {

bool side_by_side(std::vector<usage_record> const& records, memory_plan const& plan) {
  for (std::int32_t group = 0; group < 3; ++group) {
    std::int64_t end = -1;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (records[i].group != group) continue;
      if (end >= 0 && plan.offsets[i] != (end + records[i].alignment - 1) / records[i].alignment * records[i].alignment)
        return false;
      end = plan.offsets[i] + records[i].size;
    }
  }
  return true;
}

/// The least height with groups of common lives side by side, every offset tried.
bool fits(std::vector<usage_record> const& records, std::int64_t height, std::vector<std::int64_t>& at) {
  auto const k = at.size();
  if (k == records.size()) return true;
  usage_record const& r = records[k];
  for (std::int64_t x = 0; x + r.size <= height; ++x) {
    bool good = true;
    for (std::size_t j = k; j-- > 0 && good;) {
      usage_record const& q = records[j];
      good = q.upper <= r.lower || r.upper <= q.lower || at[j] + q.size <= x || x + r.size <= at[j];
    }
    for (std::size_t j = k; j-- > 0 && r.group >= 0;)
      if (records[j].group == r.group) {
        good = good && x == at[j] + records[j].size;
        break;
      }
    if (!good) continue;
    at.push_back(x);
    if (fits(records, height, at)) return true;
    at.pop_back();
  }
  return false;
}

}  // namespace

TEST_CASE("groups of one common life: equal to brute force") {
  std::mt19937_64 rng(41);
  for (int round = 0; round < 3000; ++round) {
    std::vector<usage_record> records(2 + rng() % 5);
    for (auto& r : records) {
      r.lower = static_cast<std::int64_t>(rng() % 6);
      r.upper = r.lower + 1 + static_cast<std::int64_t>(rng() % 5);
      r.size = 1 + static_cast<std::int64_t>(rng() % 4);
      r.group = static_cast<std::int32_t>(rng() % 3) - 1;
    }
    for (auto& r : records)
      for (auto const& q : records)
        if (r.group >= 0 && q.group == r.group) {
          r.lower = q.lower, r.upper = q.upper;
          break;
        }
    auto const plan = plan_with_groups(records, exact{});
    REQUIRE(plan.status == plan_status::optimal);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    REQUIRE(side_by_side(records, plan));
    std::int64_t optimum = 0;
    for (std::vector<std::int64_t> at; !fits(records, optimum, at); at.clear()) ++optimum;
    REQUIRE(plan.arena_bytes == optimum);
  }
}

TEST_CASE("groups of any lives and alignments lie side by side, in plans that are right") {
  std::mt19937_64 rng(42);
  for (int round = 0; round < 1000; ++round) {
    std::vector<usage_record> records(2 + rng() % 30);
    for (auto& r : records) {
      r.lower = static_cast<std::int64_t>(rng() % 20);
      r.upper = r.lower + 1 + static_cast<std::int64_t>(rng() % 9);
      r.size = 1 + static_cast<std::int64_t>(rng() % 40);
      r.alignment = std::array<std::int64_t, 3>{1, 4, 6}[rng() % 3];
      r.group = rng() % 2 ? static_cast<std::int32_t>(rng() % 3) : -1;
    }
    for (auto const& plan :
         {plan_with_groups(records, default_planner{}), plan_with_groups(records, greedy_by_size{})}) {
      REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
      REQUIRE(side_by_side(records, plan));
    }
  }
}

TEST_CASE("contradictions are told with the record") {
  std::vector<usage_record> records{{.upper = 1, .size = 8, .offset = 0, .group = 0},
                                    {.upper = 1, .size = 8, .offset = 16, .group = 0}};
  CHECK(plan_with_groups(records, default_planner{}).why.message() ==
        "record 1: its fixed offset contradicts its place in the group");
  records[1].offset = 8;
  CHECK(plan_with_groups(records, default_planner{}).arena_bytes == 16);
}

namespace {

struct member {
  int lower, upper, size, group;
};

}  // namespace

TEST_CASE("any type with a life, a size and a group is a record here") {
  std::vector<member> const three{{0, 9, 4, 7}, {0, 9, 6, -1}, {0, 9, 2, 7}};
  auto const plan = plan_with_groups(three, default_planner{});
  CHECK(plan.arena_bytes == 12);
  CHECK(plan.offsets[2] == plan.offsets[0] + 4);
}
