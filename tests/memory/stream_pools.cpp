#include <neap/memory/streams/stream_pools.hpp>

#include "brute_pools.hpp"
#include "brute_streams.hpp"

#include <neap/memory/streams/check_streams.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

namespace {

/// Every pool's records right within it, with their waits, and the cost as claimed.
void check_pooled(std::vector<stream_record> const& records, std::vector<memory_pool> const& pools,
                  pooled_stream_plan const& planned) {
  pooled_plan const& plan = planned.plan;
  REQUIRE(plan.pool_of.size() == records.size());
  double seconds = 0;
  std::size_t waits = 0;
  for (std::size_t j = 0; j < pools.size(); ++j) {
    std::vector<stream_record> in;
    std::vector<std::uint32_t> original;
    stream_plan part;
    for (std::uint32_t i = 0; i < records.size(); ++i)
      if (plan.pool_of[i] == static_cast<std::int32_t>(j)) {
        if (records[i].pool >= 0) REQUIRE(records[i].pool == plan.pool_of[i]);
        in.push_back(records[i]), part.plan.offsets.push_back(plan.offsets[i]), original.push_back(i);
        seconds += static_cast<double>(records[i].size) / pools[j].bytes_per_second;
      }
    for (std::uint32_t a = 0; a < in.size(); ++a)
      for (std::uint32_t b = 0; b < in.size(); ++b)
        if (std::find(planned.waits.begin(), planned.waits.end(), stream_wait{original[a], original[b]}) !=
            planned.waits.end())
          part.waits.push_back({a, b}), ++waits;
    part.plan.arena_bytes = plan.arena_bytes[j];
    REQUIRE(plan.arena_bytes[j] <= pools[j].capacity);
    REQUIRE_MESSAGE(verify(in, part).ok(), verify(in, part).message());
  }
  REQUIRE(waits == planned.waits.size());
  REQUIRE(plan.seconds == seconds);  // speeds are powers of two: sums are exact
}

}  // namespace

TEST_CASE("alignment, gaps, fixed offsets, pools and streams at once: status and cost equal to brute force") {
  std::mt19937_64 rng(51);
  int infeasible = 0, above = 0, handed = 0, spilled = 0, all_at_once = 0, filled_too = 0;
  for (int round = 0; round < rounds; ++round) {
    // In every other round each of the three; the cheapest by loads alone must then not do.
    bool const tight = round % 2 == 1, across = round / 2 % 4 != 0;
    kind const k{tight || round / 8 % 2 == 1, tight || round / 16 % 2 == 1, tight || round / 32 % 2 == 1,
                 round / 64 % 2 == 1};
    std::vector<stream_record> records;
    std::vector<memory_pool> pools;
    double best = -1, relaxed = -1;
    for (int attempt = 0; attempt < 40; ++attempt) {
      records = random_streams(rng, k, 3, 3);
      pools.assign(2 + rng() % 2, {});
      stream_board board(records, across);
      auto const load = board.load();
      for (std::size_t j = 0; j < pools.size(); ++j)
        pools[j] = {std::max<std::int64_t>(0, load - static_cast<std::int64_t>(rng() % 6)),
                    std::array<double, 3>{8, 2, 1}[(j + static_cast<std::size_t>(round)) % 3]};
      for (auto& r : records)
        if (rng() % 3 == 0) r.pool = static_cast<std::int32_t>(rng() % pools.size());
      relaxed =
          cheapest(records, pools,
                   remembered([&](std::size_t j, unsigned mask) { return board.load(mask) <= pools[j].capacity; }));
      if (tight && relaxed < 0) continue;
      best = cheapest(records, pools,
                      remembered([&](std::size_t j, unsigned mask) { return board.fits(pools[j].capacity, mask); }));
      if (!tight || best != relaxed) break;
    }
    if (tight && relaxed < 0) best = -1;
    bool aligned = false, gaps = false, fixed = false, asked = false;
    for (auto const& r : records)
      aligned |= r.alignment > 1, gaps |= !r.gaps.empty(), fixed |= r.offset >= 0, asked |= r.pool >= 0;
    all_at_once += aligned && gaps && fixed && asked;
    auto const plan = plan_pools(records, pools, across);
    above += best != relaxed, infeasible += best < 0;
    REQUIRE(plan.plan.status == (best < 0 ? plan_status::infeasible : plan_status::optimal));
    auto const filled = plan_pools(records, pools, across, 0);  // the way of large problems
    if (best < 0) {
      REQUIRE(plan.plan.offsets.empty());
      REQUIRE(!has_offsets(filled.plan.status));
      continue;
    }
    REQUIRE(plan.plan.seconds == best);
    check_pooled(records, pools, plan);
    if (!across) REQUIRE(plan.waits.empty());
    handed += !plan.waits.empty();
    for (auto j : plan.plan.pool_of) spilled += pools[static_cast<std::size_t>(j)].bytes_per_second < 8;
    if (!has_offsets(filled.plan.status)) {
      REQUIRE(filled.plan.status == plan_status::budget_spent);  // a filling without room proves nothing
      continue;
    }
    ++filled_too;
    REQUIRE(filled.plan.seconds >= best);
    check_pooled(records, pools, filled);
  }
  MESSAGE(rounds << " problems, " << above << " beyond what loads say, " << infeasible << " infeasible, " << all_at_once
                 << " with every property, " << handed << " with hand-overs, " << filled_too
                 << " filled as large ones are");
  CHECK(above * 3 >= rounds);
  CHECK(infeasible * 10 >= rounds);
  CHECK(all_at_once * 5 >= rounds);
  CHECK(handed * 20 >= rounds);
  CHECK(spilled > rounds / 2);
  CHECK(filled_too * 4 >= rounds);
}

TEST_CASE("large problems: the fast pool is filled first, every pool is right") {
  std::mt19937_64 rng(52);
  std::vector<stream_record> records;
  for (int i = 0; i < 60; ++i) {
    auto const s = static_cast<std::int32_t>(rng() % 2);
    std::vector<std::int64_t> born{i / 2, i / 2}, dies{0, 0};
    dies[static_cast<std::size_t>(s)] = i / 2 + 1 + static_cast<std::int64_t>(rng() % 9);
    records.push_back(
        {.size = 64 * (1 + static_cast<std::int64_t>(rng() % 20)), .stream = s, .born = born, .dies = dies});
  }
  auto const all = plan_streams(records).plan.arena_bytes;
  std::vector<memory_pool> const pools{{all / 2, 128}, {all, 1}};
  auto const plan = plan_pools(records, pools);
  REQUIRE(plan.plan.status == plan_status::feasible);
  CHECK(plan.plan.arena_bytes[0] >= all / 3);
  check_pooled(records, pools, plan);
  records[7].pool = 3;
  CHECK(plan_pools(records, pools).plan.why.message() == "record 7: there is no pool of that number");
  records[7].dies = {0};
  CHECK(plan_pools(records, pools).plan.why.message() == "record 7: its clocks have another number of streams");
}
