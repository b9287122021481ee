#include <neap/memory/forms/pools.hpp>

#include "brute_pools.hpp"

#include <neap/memory/bounds.hpp>
#include <neap/memory/check/check.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

namespace {

/// Every pool's records right within it, and the cost as claimed.
void check_pooled(std::vector<usage_record> const& records, std::vector<memory_pool> const& pools,
                  pooled_plan const& plan) {
  REQUIRE(plan.pool_of.size() == records.size());
  double seconds = 0;
  for (std::size_t j = 0; j < pools.size(); ++j) {
    std::vector<usage_record> in;
    memory_plan part;
    for (std::size_t i = 0; i < records.size(); ++i)
      if (plan.pool_of[i] == static_cast<std::int32_t>(j)) {
        if (records[i].pool >= 0) REQUIRE(records[i].pool == plan.pool_of[i]);
        in.push_back(records[i]), part.offsets.push_back(plan.offsets[i]);
        seconds += static_cast<double>(records[i].size) / pools[j].bytes_per_second;
      }
    part.arena_bytes = plan.arena_bytes[j];
    REQUIRE(part.arena_bytes <= pools[j].capacity);
    REQUIRE_MESSAGE(verify(in, part).ok(), verify(in, part).message());
  }
  REQUIRE(plan.seconds == seconds);  // speeds are powers of two: sums are exact
}

}  // namespace

TEST_CASE("small problems: status and cost equal to trying every assignment and offset") {
  std::mt19937_64 rng(12);
  int infeasible = 0, above = 0, spilled = 0, filled_too = 0;
  for (int round = 0; round < rounds; ++round) {
    kind const k{round % 2 == 1, round / 2 % 2 == 1, round / 4 % 2 == 1, round / 16 % 2 == 1};
    bool const tight = round / 8 % 2 == 1;
    std::vector<usage_record> records;
    std::vector<memory_pool> pools;
    double best = -1, relaxed = -1;
    // By loads alone a cheaper assignment would do, or one at all: every other problem must be of that kind.
    for (int attempt = 0; attempt < 24; ++attempt) {
      records = random_records(rng, k);
      for (auto& r : records) {
        if (r.offset > 10) r.offset = any_offset;
        if (rng() % 16 == 0) r.size = 0, r.gaps.clear();
      }
      pools.assign(2 + rng() % 2, {});
      auto const load = load_of(records);
      for (std::size_t j = 0; j < pools.size(); ++j)
        pools[j] = {std::max<std::int64_t>(0, load - static_cast<std::int64_t>(rng() % 7)),
                    std::array<double, 3>{8, 2, 1}[(j + static_cast<std::size_t>(round)) % 3]};
      for (auto& r : records)
        if (rng() % 3 == 0) r.pool = static_cast<std::int32_t>(rng() % pools.size());
      relaxed = cheapest(records, pools, remembered([&](std::size_t j, unsigned mask) {
                           return load_of(records, mask) <= pools[j].capacity;
                         }));
      if (tight && relaxed < 0 && attempt < 23) continue;
      best = cheapest(records, pools, remembered([&](std::size_t j, unsigned mask) {
                        return board(records, mask).fits(pools[j].capacity);
                      }));
      if (!tight || best != relaxed) break;
    }
    auto const plan = plan_pools(records, pools);
    above += best != relaxed;
    infeasible += best < 0;
    REQUIRE(plan.status == (best < 0 ? plan_status::infeasible : plan_status::optimal));
    auto const filled = plan_pools(records, pools, 0);  // the way of large problems
    if (best < 0) {
      REQUIRE(plan.offsets.empty());
      REQUIRE(!has_offsets(filled.status));
      continue;
    }
    REQUIRE(plan.seconds == best);
    check_pooled(records, pools, plan);
    for (auto j : plan.pool_of) spilled += pools[static_cast<std::size_t>(j)].bytes_per_second < 8;
    if (!has_offsets(filled.status)) {
      REQUIRE(filled.status == plan_status::budget_spent);  // a filling without room proves nothing
      continue;
    }
    ++filled_too;
    REQUIRE(filled.seconds >= best);
    check_pooled(records, pools, filled);
  }
  MESSAGE(rounds << " problems, " << above << " beyond what loads say, " << infeasible << " infeasible, " << filled_too
                 << " filled as large ones are");
  CHECK(above * 3 >= rounds);
  CHECK(infeasible * 10 >= rounds);
  CHECK(spilled > rounds);
  CHECK(filled_too * 4 >= rounds);
}

TEST_CASE("large problems fill the fast pool first") {
  std::mt19937_64 rng(13);
  std::vector<usage_record> records(300);
  for (auto& r : records) {
    r.lower = static_cast<std::int64_t>(rng() % 200);
    r.upper = r.lower + 1 + static_cast<std::int64_t>(rng() % 40);
    r.size = 64 * (1 + static_cast<std::int64_t>(rng() % 50));
  }
  auto const bound = load_lower_bound(records).bytes;
  std::array<memory_pool, 2> const pools{{{bound / 2, 100}, {bound * 2, 1}}};
  auto const plan = plan_pools(records, pools);
  REQUIRE(plan.status == plan_status::feasible);
  CHECK(plan.arena_bytes[0] <= bound / 2);
  CHECK(plan.arena_bytes[0] >= bound / 3);
  CHECK(plan_pools(records, std::array<memory_pool, 1>{{{bound / 2, 1}}}).status == plan_status::budget_spent);
  records[7].pool = 3;
  CHECK(plan_pools(records, pools).why.message() == "record 7: there is no pool of that number");
}

namespace {

struct plain {
  int lower, upper, size;
};
struct asking : plain {
  int pool;
};

}  // namespace

TEST_CASE("any type with a life and a size is a record here; one with a pool is asked") {
  std::array<memory_pool, 2> const pools{{{8, 2}, {8, 1}}};
  std::array<plain, 2> const two{{{0, 4, 8}, {2, 6, 8}}};
  CHECK(plan_pools(two, pools).pool_of == std::vector<std::int32_t>{0, 1});
  std::array<asking, 2> const one{{{{0, 4, 8}, 1}, {{2, 6, 8}, -1}}};
  CHECK(plan_pools(one, pools).pool_of == std::vector<std::int32_t>{1, 0});
}

TEST_CASE("a memory in pieces: as trying every assignment to its pieces") {
  std::mt19937_64 rng(31);
  int several = 0, none = 0;
  for (int round = 0; round < rounds; ++round) {
    auto records = random_records(rng, kind{round % 2 == 1, false, round / 4 % 2 == 1, false});
    if (records.size() > 5) records.resize(5);
    for (auto& r : records) {
      r.offset = any_offset;
      if (r.alignment > 4) r.alignment = 4;
    }
    std::int64_t most = 1, sum = 0;
    for (auto const& r : records) most = std::max(most, r.size), sum += r.size;
    std::int64_t const piece = std::max<std::int64_t>(1, most + static_cast<std::int64_t>(rng() % 4) - 1);
    std::int64_t const capacity =
        std::min<std::int64_t>(3 * piece, std::max<std::int64_t>(1, sum / 2 + static_cast<std::int64_t>(rng() % 8)));
    std::vector<memory_pool> const pools{{capacity, 1, piece}};
    // The same as pools of their own, one a piece.
    std::vector<memory_pool> apart;
    for (auto left = capacity; left > 0; left -= piece) apart.push_back({std::min(left, piece), 1});
    auto const best = cheapest(records, apart, remembered([&](std::size_t j, unsigned mask) {
                                 return board(records, mask).fits(apart[j].capacity);
                               }));
    auto const plan = plan_pools(records, pools);
    REQUIRE(plan.status == (best < 0 ? plan_status::infeasible : plan_status::optimal));
    for (auto const& p : {plan, plan_pools(records, pools, 0)}) {
      if (best < 0) REQUIRE(!has_offsets(p.status));
      if (!has_offsets(p.status)) continue;
      REQUIRE(p.piece_of.size() == records.size());
      std::int64_t all = 0;
      for (std::size_t k = 0; k < p.piece_bytes[0].size(); ++k) {
        std::vector<usage_record> in;
        memory_plan part;
        for (std::size_t i = 0; i < records.size(); ++i)
          if (p.piece_of[i] == static_cast<std::int32_t>(k))
            in.push_back(records[i]), part.offsets.push_back(p.offsets[i]);
        part.arena_bytes = p.piece_bytes[0][k];
        REQUIRE(part.arena_bytes <= apart[k].capacity);
        REQUIRE_MESSAGE(verify(in, part).ok(), verify(in, part).message());
        all += part.arena_bytes;
      }
      REQUIRE(all == p.arena_bytes[0]);
      several += p.piece_bytes[0].size() > 1;
    }
    none += best < 0;
  }
  CHECK(several > rounds / 8);
  CHECK(none > 0);
}

TEST_CASE("a record larger than any piece is named; many records fill pieces; a piece may be asked for") {
  std::vector<usage_record> records(200);
  std::mt19937_64 rng(5);
  for (auto& r : records) {
    r.lower = static_cast<std::int64_t>(rng() % 100);
    r.upper = r.lower + 1 + static_cast<std::int64_t>(rng() % 30);
    r.size = 1 + static_cast<std::int64_t>(rng() % 50);
  }
  std::vector<memory_pool> const pools{{INT64_MAX, 1, 128}};
  auto const plan = plan_pools(records, pools);
  REQUIRE(plan.status == plan_status::feasible);
  CHECK(plan.piece_bytes[0].size() > 2);
  for (auto const bytes : plan.piece_bytes[0]) CHECK(bytes <= 128);
  CHECK(plan.piece_bytes[0].size() * 128 < static_cast<std::size_t>(3 * load_lower_bound(records).bytes));
  records[17].size = 129;
  CHECK(plan_pools(records, pools).why.message() ==
        "record 17: it is larger than any piece of memory that it may lie in");
  std::vector<usage_record> two{{.lower = 0, .upper = 2, .size = 8, .pool = 0},
                                {.lower = 0, .upper = 2, .size = 8, .pool = 0}};
  std::vector<std::int32_t> const asked{1, -1};
  auto const pieces = plan_pools(two, std::vector<memory_pool>{{16, 1, 8}}, 12, asked);
  REQUIRE(has_offsets(pieces.status));
  CHECK(pieces.piece_of == std::vector<std::int32_t>{1, 0});
  std::vector<std::int32_t> const beyond{2, -1};
  CHECK(plan_pools(two, std::vector<memory_pool>{{16, 1, 8}}, 12, beyond).why.message() ==
        "record 0: there is no piece of that number");
}
