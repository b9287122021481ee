#include <neap/memory/planner.hpp>

#include <neap/memory/check/check.hpp>

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace neap;

namespace {

static_assert(memory_planner<default_planner> && memory_planner<lowest_plateau> && memory_planner<greedy_by_size> &&
              memory_planner<first_fit>);
struct not_a_planner {
  int operator()(memory_problem const&) const { return 0; }
};
static_assert(!memory_planner<not_a_planner>);

// MiniMalloc's example (input.12): five records, optimum 12, found by the compiler.
struct interval {
  int lower, upper;
  long long size;
};
constexpr std::array<interval, 5> input12{{{0, 3, 4}, {3, 9, 4}, {0, 9, 4}, {9, 21, 4}, {0, 21, 4}}};
static_assert(default_planner{}(input12).arena_bytes == 12);
static_assert(load_lower_bound(input12).bytes == 12);
static_assert(greedy_by_size{}(input12).arena_bytes == 12);
static_assert(naive{}(input12).arena_bytes == 20);

std::vector<usage_record> random_records(std::mt19937_64& rng, bool alignments, bool gaps, bool fixed) {
  std::vector<usage_record> records(rng() % 40);
  for (auto& r : records) {
    r.lower = static_cast<std::int64_t>(rng() % 30) - 5;
    r.upper = r.lower + static_cast<std::int64_t>(rng() % 12);
    r.size = static_cast<std::int64_t>(rng() % 20);
    if (alignments) r.alignment = std::int64_t{1} << (rng() % 4);
    if (gaps && rng() % 3 == 0 && r.upper - r.lower > 3) {
      r.gaps.push_back({r.lower + 1, r.lower + 2, 0, 0});
      if (rng() % 2) r.gaps[0].window_upper = r.size / 2;
    }
    if (fixed && rng() % 8 == 0) r.offset = static_cast<std::int64_t>(rng() % 10) * r.alignment;
  }
  return records;
}

}  // namespace

TEST_CASE("every planner's plans pass the sweep") {
  std::mt19937_64 rng(7);
  for (int round = 0; round < 2000; ++round) {
    auto const records = random_records(rng, round & 1, round & 2, false);
    std::span<usage_record const> const view = records;
    std::int64_t const bound = load_lower_bound(view).bytes;
    for (auto const& plan :
         {default_planner{}(view), lowest_plateau{}(view), lowest_plateaus{}(view), lowest_plateaus{1}(view),
          greedy_by_size{}(view), naive{}(view), first_fit{}(view), lowest_plateau{order_awt}(view)}) {
      CHECK(has_offsets(plan));
      CHECK_MESSAGE(verify(view, plan).ok(), verify(view, plan).message());
      CHECK(plan.lower_bound_bytes == bound);
      CHECK(plan.arena_bytes >= bound);
      CHECK((plan.status == plan_status::optimal) == (plan.arena_bytes == bound));
    }
  }
}

TEST_CASE("fixed offsets are kept, and collisions between them told") {
  std::mt19937_64 rng(11);
  int kept = 0;
  for (int round = 0; round < 500; ++round) {
    auto const records = random_records(rng, round & 1, round & 2, true);
    auto const plan = default_planner{}(records);
    if (!has_offsets(plan)) {
      CHECK(plan.why.record >= 0);
      continue;
    }
    ++kept;
    CHECK_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
  }
  CHECK(kept > 50);
}

TEST_CASE("the default planner is no worse than each of its parts, with all properties") {
  std::mt19937_64 rng(13);
  for (int round = 0; round < 1000; ++round) {
    auto const records = random_records(rng, round & 1, round & 2, round & 4);
    auto const plan = default_planner{}(records);
    auto const greedy = greedy_by_size{}(records);
    CHECK(has_offsets(plan) == has_offsets(greedy));
    if (!has_offsets(plan)) continue;
    CHECK(plan.arena_bytes <= greedy.arena_bytes);
    CHECK(plan == default_planner{}(records));
    if (!(round & 4)) CHECK(plan.arena_bytes <= lowest_plateaus{}(records).arena_bytes);
    // Without greedy by size, as for many records.
    auto const many = default_planner{.greedy_limit = 0, .many = 0}(records);
    REQUIRE_MESSAGE(verify(records, many).ok(), verify(records, many).message());
  }
}

TEST_CASE("the plateau rule meets the bound on nested lifetimes") {
  std::vector<usage_record> records;  // forward values live until their backward op, as in training
  for (int i = 0; i < 50; ++i) {
    records.push_back({.lower = i, .upper = 100 - i, .size = 64 + i % 7});
    records.push_back({.lower = 99 - i, .upper = 101 - i, .size = 64});
  }
  CHECK(lowest_plateau{}(records).status == plan_status::optimal);
}

TEST_CASE("faulty records are refused with the record and the fault") {
  auto const told = [](usage_record const& r) {
    return default_planner{}(std::vector{usage_record{0, 1, 1}, r}).why.message();
  };
  CHECK(told({.lower = 3, .upper = 2, .size = 1}) == "record 1: its life ends before it begins");
  CHECK(told({.lower = 0, .upper = 2, .size = -1}) == "record 1: its size is negative");
  CHECK(told({.lower = 0, .upper = 2, .size = 1, .alignment = 0}) == "record 1: its alignment is below 1");
  CHECK(told({.lower = 0, .upper = 2, .size = 1, .alignment = 4, .offset = 2}) ==
        "record 1: its fixed offset is not aligned");
  CHECK(told({.lower = 0, .upper = 9, .size = 1, .gaps = {{3, 3, 0, 0}}}) ==
        "record 1: a gap is empty, out of order or outside the life");
  CHECK(told({.lower = 0, .upper = 9, .size = 1, .gaps = {{3, 4, 0, 2}}}) ==
        "record 1: a gap's window is outside the record");
  CHECK(told({.lower = 0, .upper = 9, .size = std::int64_t{1} << 62}) == "record 1: its bytes are beyond 2^60");
}

TEST_CASE("no records, and records that need nothing") {
  std::vector<usage_record> none;
  CHECK(default_planner{}(none).status == plan_status::optimal);
  std::vector<usage_record> empty{{.lower = 0, .upper = 5, .size = 0}, {.lower = 4, .upper = 4, .size = 9}};
  auto const plan = default_planner{}(empty);
  CHECK(plan.arena_bytes == 0);
  CHECK(verify(empty, plan).ok());
}
