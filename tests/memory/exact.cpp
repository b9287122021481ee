#include <neap/memory/exact.hpp>

#include <neap/memory/check.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;

namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define NEAP_TEST_SANITIZED
#endif
#endif
#if defined(NEAP_TEST_SANITIZED) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int rounds = 5000;
#else
constexpr int rounds = 100000;
#endif

// Five records, none of whose greedy orders the compiler needs: the exact planner in a constant expression.
struct interval {
  int lower, upper, size;
};
constexpr std::array<interval, 5> five{{{0, 3, 4}, {3, 9, 4}, {0, 9, 4}, {9, 21, 4}, {0, 21, 4}}};
static_assert(exact{}(five).status == plan_status::optimal && exact{}(five).arena_bytes == 12);

/// Every offset of every record, byte by byte on a small board: bit b of board[t] is byte b at moment t.
struct board {
  static constexpr std::int64_t moments = 10;
  std::array<std::uint64_t, moments> bytes{};
  std::vector<usage_record> const& records;
  std::vector<std::size_t> order;

  explicit board(std::vector<usage_record> const& r) : records(r) {
    for (std::size_t i = 0; i < r.size(); ++i) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      bool const fa = records[a].offset != any_offset, fb = records[b].offset != any_offset;
      if (fa != fb) return fa;
      return records[a].size * (records[a].upper - records[a].lower) >
             records[b].size * (records[b].upper - records[b].lower);
    });
  }
  static std::uint64_t stretch(usage_record const& r, std::int64_t t) {
    std::int64_t from = 0, to = r.size;
    for (auto const& g : r.gaps)
      if (g.lower <= t && t < g.upper) from = g.window_lower, to = g.window_upper;
    return ((std::uint64_t{1} << to) - 1) & ~((std::uint64_t{1} << from) - 1);
  }
  bool fits(std::int64_t height, std::size_t k = 0) {
    if (k == order.size()) return true;
    usage_record const& r = records[order[k]];
    bool const occupies = r.size > 0 && r.upper > r.lower;
    std::int64_t const first = r.offset != any_offset ? r.offset : 0;
    std::int64_t const last = r.offset != any_offset ? r.offset : occupies ? height - r.size : 0;
    for (std::int64_t at = first; at <= last && at + r.size <= height; at += r.alignment) {
      bool free = true;
      for (auto t = r.lower; t < r.upper; ++t) free &= (bytes[static_cast<std::size_t>(t)] & stretch(r, t) << at) == 0;
      if (!free) continue;
      for (auto t = r.lower; t < r.upper; ++t) bytes[static_cast<std::size_t>(t)] |= stretch(r, t) << at;
      bool const done = fits(height, k + 1);
      for (auto t = r.lower; t < r.upper; ++t) bytes[static_cast<std::size_t>(t)] &= ~(stretch(r, t) << at);
      if (done) return true;
    }
    return !occupies && r.offset == any_offset;
  }
};

struct kind {
  bool aligned, gaps, fixed;
};

std::vector<usage_record> random_records(std::mt19937_64& rng, kind k) {
  auto const below = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng() % n); };
  std::vector<usage_record> records(2 + rng() % 5);
  for (auto& r : records) {
    r.lower = below(board::moments - 1);
    r.upper = std::min<std::int64_t>(board::moments, r.lower + 1 + below(6));
    r.size = 1 + below(5);
    if (k.aligned && rng() % 2) r.alignment = std::array<std::int64_t, 4>{2, 3, 4, 6}[rng() % 4];
    if (k.gaps && r.upper - r.lower > 2 && rng() % 2) {
      auto const lo = r.lower + 1 + below(static_cast<std::uint64_t>(r.upper - r.lower - 2));
      r.gaps.push_back({lo, lo + 1, 0, 0});
    }
    if (k.fixed && rng() % 4 == 0) r.offset = r.alignment * below(5);
  }
  return records;
}

}  // namespace

TEST_CASE("the exact planner equals brute force in height and in status") {
  std::mt19937_64 rng(2024);
  int above = 0, infeasible = 0;
  for (int round = 0; round < rounds; ++round) {
    kind const k{round % 2 == 1, round / 2 % 2 == 1, round / 4 % 2 == 1};
    std::vector<usage_record> records;
    std::int64_t optimum = 0, load = 0;
    // Problems whose optimum is the load are many and easy: of each kind, every other one must lie above.
    for (int attempt = 0; attempt < 40; ++attempt) {
      records = random_records(rng, k);
      load = load_lower_bound(records).bytes;
      std::int64_t const most = 40;
      auto only_fixed = records;
      std::erase_if(only_fixed, [](usage_record const& r) { return r.offset == any_offset; });
      optimum = board(only_fixed).fits(most) ? load : -1;
      while (optimum >= 0 && !board(records).fits(optimum)) ++optimum;
      if (round / 8 % 2 == 0 || optimum > load) break;
    }
    exact planner;
    planner.tricks = {round % 3 != 0, round % 5 != 0, round % 7 != 0, round % 11 != 0};
    auto const plan = planner(records);
    if (optimum < 0) {  // fixed records collide
      ++infeasible;
      REQUIRE(plan.status == plan_status::infeasible);
      REQUIRE(plan.why.record >= 0);
      continue;
    }
    above += optimum > load;
    REQUIRE(plan.status == plan_status::optimal);
    REQUIRE(plan.arena_bytes == optimum);
    REQUIRE(plan.lower_bound_bytes == optimum);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    planner.capacity = optimum;
    REQUIRE(has_offsets(planner(records)));
    planner.capacity = optimum - 1;
    REQUIRE(planner(records).status == plan_status::infeasible);
  }
  MESSAGE(rounds << " problems, " << above << " with an optimum above the load, " << infeasible << " infeasible");
  CHECK(above * 3 >= rounds);
}

TEST_CASE("windows in gaps: plans are right, and never called optimal where brute force finds less") {
  std::mt19937_64 rng(5);
  for (int round = 0; round < rounds / 20; ++round) {
    auto records = random_records(rng, {false, true, false});
    for (auto& r : records)
      for (auto& g : r.gaps) g.window_upper = r.size / 2;
    auto const plan = exact{}(records);
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    std::int64_t optimum = load_lower_bound(records).bytes;
    while (!board(records).fits(optimum)) ++optimum;
    REQUIRE(plan.arena_bytes >= optimum);
    if (plan.status == plan_status::optimal) REQUIRE(plan.arena_bytes == optimum);
  }
}

TEST_CASE("budgets: nodes and seconds end the search with the best plan; threads do not change it") {
  std::mt19937_64 rng(3);
  std::vector<usage_record> records;
  for (int i = 0; i < 120; ++i) {
    auto const lower = static_cast<std::int64_t>(rng() % 60);
    records.push_back({.lower = lower,
                       .upper = lower + 1 + static_cast<std::int64_t>(rng() % 20),
                       .size = 1 + static_cast<std::int64_t>(rng() % 900)});
  }
  exact short_of_nodes{.budget = {.nodes = 20000}};
  auto const one = short_of_nodes(records);
  CHECK(one.work <= 22000);
  CHECK(verify(records, one).ok());
  short_of_nodes.threads = 3;
  CHECK(short_of_nodes(records) == one);
  auto const in_time = exact{.budget = {.nodes = std::int64_t{1} << 60, .seconds = 0.05}}(records);
  CHECK(verify(records, in_time).ok());
  CHECK(in_time.arena_bytes <= lowest_plateaus{}(records).arena_bytes);
}

TEST_CASE("sizes beyond 32 bits are searched in 64") {
  std::vector<usage_record> records;
  for (int i = 0; i < 8; ++i)
    records.push_back({.lower = i, .upper = i + 4, .size = (std::int64_t{1} << 40) + 7 * i + 1});
  auto const plan = exact{}(records);
  CHECK(plan.status == plan_status::optimal);
  CHECK(verify(records, plan).ok());
}
