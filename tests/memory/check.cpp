#include <neap/memory/check/check.hpp>

#include <neap/memory/bounds.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace neap;

namespace {

std::vector<usage_record> const records{
    {.lower = 0, .upper = 4, .size = 10}, {.lower = 2, .upper = 6, .size = 10}, {.lower = 4, .upper = 8, .size = 10}};

memory_plan plan_of(std::vector<std::int64_t> offsets, std::int64_t arena) {
  memory_plan plan;
  plan.offsets = std::move(offsets);
  plan.arena_bytes = arena;
  return plan;
}

}  // namespace

TEST_CASE("a right plan passes") { CHECK(verify(records, plan_of({0, 10, 0}, 20)).ok()); }

TEST_CASE("each fault is told in one line") {
  CHECK(verify(records, plan_of({0, 5, 20}, 30)).message() ==
        "records 0 and 1 collide at moment 2: bytes [0, 10) and bytes [5, 15)");
  CHECK(verify(records, plan_of({0, 10, 19}, 30)).message() ==
        "records 1 and 2 collide at moment 4: bytes [10, 20) and bytes [19, 29)");
  CHECK(verify(records, plan_of({0, 10}, 20)).message() == "the plan has 2 offsets for 3 records");
  CHECK(verify(records, plan_of({0, 10, -1}, 20)).message() == "record 2: its offset -1 is negative");
  CHECK(verify(records, plan_of({0, 10, 0}, 19)).message() == "the arena of 19 bytes ends before the records, at 20");
  auto odd = records;
  odd[1].alignment = 8;
  CHECK(verify(odd, plan_of({0, 10, 0}, 20)).message() == "record 1: its offset 10 is not a multiple of 8");
  odd = records;
  odd[2].offset = 20;
  CHECK(verify(odd, plan_of({0, 10, 0}, 20)).message() == "record 2: it lies at 0, fixed at 20");
  auto claim = plan_of({0, 10, 20}, 30);
  claim.status = plan_status::optimal;
  claim.lower_bound_bytes = 20;
  CHECK(verify(records, claim).message() == "the plan claims to be optimal, and its bound is below its arena");
}

TEST_CASE("gaps free memory, windows only a part of it") {
  std::vector<usage_record> gap{{.lower = 0, .upper = 9, .size = 10, .gaps = {{3, 6, 0, 4}}},
                                {.lower = 4, .upper = 6, .size = 6}};
  CHECK(verify(gap, plan_of({0, 4}, 10)).ok());
  CHECK(!verify(gap, plan_of({0, 3}, 10)).ok());
  CHECK(load_lower_bound(gap).bytes == 10);
}

TEST_CASE("the bound is the heaviest moment") {
  auto const b = load_lower_bound(records);
  CHECK(b.bytes == 20);
  CHECK(b.moment == 2);
  auto fixed = records;
  fixed[0].offset = 90;
  CHECK(load_lower_bound(fixed).bytes == 100);
  std::vector<usage_record> far{{.lower = 0, .upper = 1000000000, .size = 3}, {.lower = 7, .upper = 9, .size = 4}};
  CHECK(load_lower_bound(far).bytes == 7);
  CHECK(load_lower_bound(far).moment == 7);
}

TEST_CASE("the other of two fixed records that collide") {
  std::vector<usage_record> const fixed_records{
      {.lower = 0, .upper = 9, .size = 4, .offset = 0, .gaps = {{2, 4, 0, 0}}},
      {.lower = 2, .upper = 4, .size = 4, .offset = 0},
      {.lower = 1, .upper = 3, .size = 4, .offset = 4},
      {.lower = 5, .upper = 6, .size = 4, .offset = 2},
      {.lower = 0, .upper = 9, .size = 4}};
  memory_problem const p(fixed_records);
  CHECK(colliding_fixed_record(p, 0) == 3);
  CHECK(colliding_fixed_record(p, 3) == 0);
  CHECK(colliding_fixed_record(p, 1) == 5);
  CHECK(colliding_fixed_record(p, 2) == 5);
  CHECK(colliding_fixed_record(p, 4) == 5);
}
