#include <neap/memory/streams/check_streams.hpp>

#include "brute_streams.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

TEST_CASE("each fault of a plan is told in one line") {
  // b begins on stream 1 when a has ended on stream 0, c when a was given back by its gap.
  std::vector<stream_record> const records{{.size = 8, .born = {0, 0}, .dies = {4, 0}, .gaps = {{{1, 0}, {3, 0}}}},
                                           {.size = 8, .alignment = 4, .stream = 1, .born = {4, 0}, .dies = {4, 1}},
                                           {.size = 4, .offset = 4, .stream = 0, .born = {1, 0}, .dies = {3, 0}}};
  stream_plan const good{
      {.offsets = {0, 0, 4}, .arena_bytes = 8, .lower_bound_bytes = 8, .status = plan_status::optimal},
      {{0, 1}, {2, 1}}};
  CHECK_MESSAGE(verify(records, good).ok(), verify(records, good).message());
  auto const said = [&](auto&& change) {
    auto bad = good;
    change(bad);
    return std::string(verify(records, bad).message());
  };
  CHECK(said([](auto& x) { x.plan.offsets.pop_back(); }) == "the plan has 2 offsets for 3 records");
  CHECK(said([](auto& x) { x.plan.offsets[0] = -1; }) == "record 0: its offset -1 is negative");
  CHECK(said([](auto& x) { x.plan.offsets[1] = 2; }) == "record 1: its offset 2 is not a multiple of 4");
  CHECK(said([](auto& x) { x.plan.offsets[2] = 8; }) == "record 2: it lies at 8, fixed at 4");
  CHECK(said([](auto& x) { x.plan.arena_bytes = 7; }) == "the arena of 7 bytes ends before the records, at 8");
  CHECK(said([](auto& x) { x.plan.lower_bound_bytes = 9; }) == "the arena of 8 bytes is below the bound it claims");
  CHECK(said([](auto& x) { x.plan.lower_bound_bytes = 7; }) ==
        "the plan claims to be optimal, and its bound is below its arena");
  CHECK(said([](auto& x) { x.waits.erase(x.waits.begin()); }) == "the wait of record 1 for record 0 is missing");
  CHECK(said([](auto& x) { x.waits.push_back({1, 0}); }) == "the wait of record 0 for record 1 is for nothing");
  auto whole = records;
  whole[0].gaps.clear();
  CHECK(verify(whole, good).message() ==
        "records 0 and 2 share bytes from 4 on, and neither has certainly ended when the other begins");
}

TEST_CASE("random offsets: right exactly where no two records in conflict share a byte") {
  std::mt19937_64 rng(61);
  int right = 0, wrong = 0;
  for (int round = 0; round < rounds / 5; ++round) {
    auto const records = random_streams(rng, {false, true, false, round % 2 == 1}, 2, 3);
    stream_board board(records, true);
    stream_plan tried;
    tried.plan.arena_bytes = 20;
    bool apart = true, shares_across = false;  // no waits to tell: bytes are shared within a stream only
    for (std::size_t a = 0; a < records.size(); ++a) {
      board.at[a] = static_cast<std::int64_t>(rng() % 12);
      tried.plan.offsets.push_back(board.at[a]);
      for (std::size_t b = 0; b < a; ++b) {
        bool const meet = board.at[a] < board.at[b] + records[b].size && board.at[b] < board.at[a] + records[a].size;
        shares_across |= meet && records[a].stream != records[b].stream;
        apart &= board.good(a, b);
      }
    }
    if (shares_across) continue;
    REQUIRE(verify(records, tried).ok() == apart);
    right += apart, wrong += !apart;
  }
  CHECK(right > rounds / 100);
  CHECK(wrong > rounds / 100);
}
