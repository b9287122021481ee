#include <neap/memory/streams.hpp>

#include "brute_force.hpp"

#include <neap/memory/check.hpp>
#include <neap/memory/double_buffer.hpp>
#include <neap/memory/exact.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace neap;
using neap_memory_test::rounds;

namespace {

/// Records of ops on two or three streams with random waits between them; clocks follow from the waits.
std::vector<stream_record> random_streams(std::mt19937_64& rng, bool aligned, std::size_t least) {
  std::size_t const streams = 2 + rng() % 2;
  std::vector<stream_record> records(least + rng() % 4);
  std::vector<std::vector<std::int64_t>> seen(streams, std::vector<std::int64_t>(streams, 0));  // ended ops known to s
  for (auto& r : records) {
    auto const s = rng() % streams;
    if (auto const other = rng() % streams; rng() % 2)  // s waits for all that was begun on `other`
      for (std::size_t k = 0; k < streams; ++k) seen[s][k] = std::max(seen[s][k], seen[other][k]);
    r.stream = static_cast<std::int32_t>(s);
    r.size = 1 + static_cast<std::int64_t>(rng() % 5);
    if (aligned && rng() % 2) r.alignment = std::array<std::int64_t, 3>{2, 3, 4}[rng() % 3];
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

/// Whether the records fit, every offset of every record tried; `apart[k]`: the records that may share bytes with k.
bool fits(std::vector<stream_record> const& r, std::array<unsigned, 8> const& apart, std::int64_t height,
          std::array<std::int64_t, 8>& at, std::size_t k = 0) {
  if (k == r.size()) return true;
  for (std::int64_t x = 0; x + r[k].size <= height; x += r[k].alignment) {
    bool good = true;
    for (std::size_t j = 0; good && j < k; ++j)
      good = (apart[k] >> j & 1) || x + r[k].size <= at[j] || at[j] + r[j].size <= x;
    at[k] = x;
    if (good && fits(r, apart, height, at, k + 1)) return true;
  }
  return false;
}

/// The most bytes of records that are all in conflict with one another.
std::int64_t heaviest_clique(std::vector<stream_record> const& r, std::array<unsigned, 8> const& apart) {
  std::int64_t most = 0;
  for (unsigned mask = 1; mask < 1u << r.size(); ++mask) {
    std::int64_t load = 0;
    bool all = true;
    for (std::size_t k = 0; k < r.size(); ++k)
      if (mask >> k & 1) load += r[k].size, all = all && (apart[k] & mask & ~(1u << k)) == 0;
    if (all) most = std::max(most, load);
  }
  return most;
}

/// Whether every op of which `a` waits for the end has ended when `b` is born: written out once more, for the check.
bool frees_for(stream_record const& a, stream_record const& b) {
  bool all = true;
  for (std::size_t s = 0; s < a.dies.size(); ++s) all = all && a.dies[s] <= b.born[s];
  return all;
}

}  // namespace

TEST_CASE("arenas over happens-before equal brute force, with free hand-overs and with none") {
  std::mt19937_64 rng(21);
  int above = 0, handed = 0;
  for (int round = 0; round < rounds; ++round) {
    bool const tight = round % 2 == 1, aligned = tight ? round % 16 != 1 : round / 2 % 2 == 1,
               across = round / 4 % 4 != 0;
    std::vector<stream_record> records;
    std::array<unsigned, 8> apart{};
    std::int64_t clique = 0, optimum = 0;
    // Of every other problem, the optimum must lie above the heaviest clique.
    for (int attempt = 0; attempt < 40; ++attempt) {
      records = random_streams(rng, aligned, tight ? 3 : 2);
      if (rng() % 16 == 0) records[0].size = 0;
      apart = {};
      for (std::size_t a = 0; a < records.size(); ++a)
        for (std::size_t b = 0; b < records.size(); ++b) {
          bool const ordered = frees_for(records[a], records[b]) || frees_for(records[b], records[a]);
          if (ordered && (across || records[a].stream == records[b].stream)) apart[a] |= 1u << b;
          if (records[a].size == 0 || records[b].size == 0) apart[a] |= 1u << b;
        }
      optimum = clique = heaviest_clique(records, apart);
      std::array<std::int64_t, 8> at{};
      while (!fits(records, apart, optimum, at)) ++optimum;
      if (!tight || optimum > clique) break;
    }
    above += optimum > clique;
    stream_options options;
    if (!across) options.price_bytes = std::numeric_limits<std::int64_t>::max();
    auto const found = plan_streams(records, options);
    REQUIRE(found.plan.arena_bytes == optimum);
    if (across) REQUIRE(found.plan.status == plan_status::optimal);  // with a price the bound is that without
    REQUIRE(found.plan.lower_bound_bytes <= optimum);
    handed += !found.waits.empty();
    std::vector<stream_wait> waits;
    for (std::uint32_t a = 0; a < records.size(); ++a) {
      auto const at = found.plan.offsets[a];
      REQUIRE(at >= 0);
      REQUIRE(at + records[a].size <= optimum);
      REQUIRE(at % records[a].alignment == 0);
      for (std::uint32_t b = 0; b < records.size(); ++b) {
        if (a == b || records[a].size == 0 || records[b].size == 0) continue;
        auto const bt = found.plan.offsets[b];
        bool const share = at < bt + records[b].size && bt < at + records[a].size;
        if (share) REQUIRE((apart[a] >> b & 1) == 1);
        if (share && records[a].stream != records[b].stream && frees_for(records[a], records[b]))
          waits.push_back({a, b});
      }
    }
    REQUIRE(found.waits == waits);
  }
  MESSAGE(rounds << " problems, " << above << " with an optimum above the heaviest clique, " << handed
                 << " with hand-overs across streams");
  CHECK(above * 3 >= rounds);
  CHECK(handed * 10 >= rounds);
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
