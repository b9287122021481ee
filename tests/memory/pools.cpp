#include <neap/memory/pools.hpp>

#include <neap/memory/check.hpp>

#include <doctest/doctest.h>

#include <array>
#include <random>
#include <vector>

using namespace neap;

namespace {

/// Whether records fit below a height, every offset of every record tried.
bool fits(std::vector<usage_record> const& records, std::int64_t height) {
  std::array<std::uint64_t, 8> bytes{};
  auto const place = [&](auto const& self, std::size_t k) -> bool {
    if (k == records.size()) return true;
    usage_record const& r = records[k];
    for (std::int64_t at = 0; at + r.size <= height; ++at) {
      std::uint64_t const mask = ((std::uint64_t{1} << r.size) - 1) << at;
      bool free = true;
      for (auto t = r.lower; t < r.upper; ++t) free &= (bytes[static_cast<std::size_t>(t)] & mask) == 0;
      if (!free) continue;
      for (auto t = r.lower; t < r.upper; ++t) bytes[static_cast<std::size_t>(t)] |= mask;
      bool const done = self(self, k + 1);
      for (auto t = r.lower; t < r.upper; ++t) bytes[static_cast<std::size_t>(t)] &= ~mask;
      if (done) return true;
    }
    return false;
  };
  return place(place, 0);
}

}  // namespace

TEST_CASE("small problems: status and cost equal to trying every assignment") {
  std::mt19937_64 rng(12);
  std::array<memory_pool, 2> const speeds{{{0, 8}, {0, 1}}};
  int infeasible = 0, spilled = 0;
  for (int round = 0; round < 1500; ++round) {
    auto pools = speeds;
    pools[0].capacity = static_cast<std::int64_t>(rng() % 10);
    pools[1].capacity = static_cast<std::int64_t>(rng() % 12);
    std::vector<usage_record> records(1 + rng() % 5);
    for (auto& r : records) {
      r.lower = static_cast<std::int64_t>(rng() % 6);
      r.upper = std::min<std::int64_t>(8, r.lower + 1 + static_cast<std::int64_t>(rng() % 4));
      r.size = 1 + static_cast<std::int64_t>(rng() % 5);
      if (rng() % 4 == 0) r.pool = static_cast<std::int32_t>(rng() % 2);
    }
    double cheapest = -1;
    for (unsigned choice = 0; choice < 1u << records.size(); ++choice) {
      std::array<std::vector<usage_record>, 2> in;
      double cost = 0;
      bool allowed = true;
      for (std::size_t i = 0; i < records.size(); ++i) {
        auto const pool = choice >> i & 1;
        allowed = allowed && (records[i].pool < 0 || static_cast<unsigned>(records[i].pool) == pool);
        in[pool].push_back(records[i]);
        cost += static_cast<double>(records[i].size) / pools[pool].bytes_per_second;
      }
      if (!allowed || (cheapest >= 0 && cost >= cheapest)) continue;
      if (fits(in[0], pools[0].capacity) && fits(in[1], pools[1].capacity)) cheapest = cost;
    }
    auto const plan = plan_pools(records, pools);
    REQUIRE(plan.status == (cheapest < 0 ? plan_status::infeasible : plan_status::optimal));
    infeasible += cheapest < 0;
    auto const filled = plan_pools(records, pools, 0);  // the way of large problems
    if (cheapest < 0) REQUIRE(!has_offsets(filled.status));
    if (cheapest < 0) continue;
    REQUIRE(plan.seconds == doctest::Approx(cheapest));
    if (has_offsets(filled.status)) REQUIRE(filled.seconds >= cheapest - 1e-9);
    for (auto const* each : {&plan, &filled}) {
      if (!has_offsets(each->status)) continue;
      for (std::int32_t j = 0; j < 2; ++j) {
        std::vector<usage_record> in;
        memory_plan part;
        for (std::size_t i = 0; i < records.size(); ++i)
          if (each->pool_of[i] == j) in.push_back(records[i]), part.offsets.push_back(each->offsets[i]);
        part.arena_bytes = each->arena_bytes[static_cast<std::size_t>(j)];
        REQUIRE(part.arena_bytes <= pools[static_cast<std::size_t>(j)].capacity);
        REQUIRE_MESSAGE(verify(in, part).ok(), verify(in, part).message());
        spilled += j == 1 && !in.empty();
      }
    }
  }
  CHECK(infeasible > 200);
  CHECK(spilled > 200);
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
