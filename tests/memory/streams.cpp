#include <neap/memory/streams.hpp>

#include <neap/memory/check.hpp>
#include <neap/memory/double_buffer.hpp>
#include <neap/memory/exact.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

using namespace neap;

namespace {

/// Records of ops on two or three streams with random waits between them; clocks follow from the waits.
std::vector<stream_record> random_records(std::mt19937_64& rng) {
  std::size_t const streams = 2 + rng() % 2;
  std::vector<stream_record> records(2 + rng() % 5);
  std::vector<std::vector<std::int64_t>> seen(streams, std::vector<std::int64_t>(streams, 0));  // ended ops known to s
  for (auto& r : records) {
    auto const s = rng() % streams;
    if (auto const other = rng() % streams; rng() % 2)  // s waits for all that was begun on `other`
      for (std::size_t k = 0; k < streams; ++k) seen[s][k] = std::max(seen[s][k], seen[other][k]);
    r.stream = static_cast<std::int32_t>(s);
    r.size = 1 + static_cast<std::int64_t>(rng() % 5);
    if (rng() % 3 == 0) r.alignment = 2;
    r.born = seen[s];
    seen[s][s] += 1 + static_cast<std::int64_t>(rng() % 2);
    r.dies = std::vector<std::int64_t>(streams, 0);
    r.dies[s] = seen[s][s] + static_cast<std::int64_t>(rng() % 2);
    if (rng() % 4 == 0) {  // also read on another stream
      auto const k = rng() % streams;
      seen[k][k] += 1;
      r.dies[k] = std::max(r.dies[k], seen[k][k]);
    }
  }
  return records;
}

bool apart(stream_record const& a, std::int64_t at, stream_record const& b, std::int64_t bt) {
  return precedes(a, b) || precedes(b, a) || at + a.size <= bt || bt + b.size <= at;
}

bool fits(std::vector<stream_record> const& r, std::int64_t height, std::vector<std::int64_t>& at) {
  auto const k = at.size();
  if (k == r.size()) return true;
  for (std::int64_t x = 0; x + r[k].size <= height; x += r[k].alignment) {
    bool good = true;
    for (std::size_t j = 0; j < k; ++j) good = good && apart(r[k], x, r[j], at[j]);
    if (!good) continue;
    at.push_back(x);
    if (fits(r, height, at)) return true;
    at.pop_back();
  }
  return false;
}

}  // namespace

TEST_CASE("arenas over happens-before equal brute force") {
  std::mt19937_64 rng(21);
  for (int round = 0; round < 5000; ++round) {
    auto const records = random_records(rng);
    auto const found = plan_streams(records);
    REQUIRE(found.plan.status == plan_status::optimal);
    std::int64_t optimum = 0;
    for (std::vector<std::int64_t> at; !fits(records, optimum, at); at.clear()) ++optimum;
    REQUIRE(found.plan.arena_bytes == optimum);
    for (std::size_t a = 0; a < records.size(); ++a) {
      REQUIRE(found.plan.offsets[a] % records[a].alignment == 0);
      for (std::size_t b = 0; b < a; ++b)
        REQUIRE(apart(records[a], found.plan.offsets[a], records[b], found.plan.offsets[b]));
    }
  }
}

TEST_CASE("one stream is the interval problem") {
  std::mt19937_64 rng(22);
  for (int round = 0; round < 200; ++round) {
    std::vector<stream_record> streamed;
    std::vector<usage_record> plain;
    for (int i = 0; i < 12; ++i) {
      auto const lower = static_cast<std::int64_t>(rng() % 10),
                 upper = lower + 1 + static_cast<std::int64_t>(rng() % 5);
      auto const size = 1 + static_cast<std::int64_t>(rng() % 9);
      streamed.push_back({.size = size, .born = {lower}, .dies = {upper}});
      plain.push_back({.lower = lower, .upper = upper, .size = size});
    }
    auto const plan = plan_streams(streamed).plan;
    CHECK(plan.arena_bytes == exact{}(plain).arena_bytes);
    CHECK_MESSAGE(verify(plain, plan).ok(), verify(plain, plan).message());
  }
}

TEST_CASE("hand-overs across streams are told, and not made where they cost more than they save") {
  // b begins on stream 1 after a has ended on stream 0.
  std::vector<stream_record> const records{{.size = 100, .stream = 0, .born = {0, 0}, .dies = {1, 0}},
                                           {.size = 100, .stream = 1, .born = {1, 0}, .dies = {1, 1}}};
  auto const free = plan_streams(records);
  CHECK(free.plan.arena_bytes == 100);
  CHECK(free.waits == std::vector<stream_wait>{{0, 1}});
  CHECK(plan_streams(records, {.price_bytes = 100}).plan.arena_bytes == 100);
  auto const dear = plan_streams(records, {.price_bytes = 101});
  CHECK(dear.plan.arena_bytes == 200);
  CHECK(dear.plan.lower_bound_bytes == 100);
  CHECK(dear.waits.empty());
}

TEST_CASE("faulty clocks are refused") {
  std::vector<stream_record> records{{.size = 1, .born = {0}, .dies = {1}},
                                     {.size = 1, .born = {0, 0}, .dies = {1, 1}}};
  CHECK(plan_streams(records).plan.why.message() == "record 1: its clocks have another number of streams");
  records[1] = {.size = 1, .born = {3}, .dies = {3}};
  CHECK(plan_streams(records).plan.why.message() == "record 1: its death is not after its birth");
}

TEST_CASE("double buffers: two of a sequence live at any moment") {
  std::vector<usage_record> records;
  std::vector<std::size_t> sequence;
  for (int k = 0; k < 6; ++k)
    records.push_back({.lower = 10 * k, .upper = 10 * k + 10, .size = 7}),
        sequence.push_back(static_cast<std::size_t>(k));
  run_ahead(records, sequence);
  CHECK(records[0].lower == 0);
  CHECK(records[3].lower == 20);
  CHECK(load_lower_bound(records).bytes == 14);
  CHECK(default_planner{}(records).arena_bytes == 14);
}
