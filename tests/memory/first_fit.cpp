#include <neap/memory/greedy/first_fit.hpp>

#include <neap/memory/check/check.hpp>
#include <neap/memory/planner.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

using namespace neap;

namespace {

static_assert(memory_planner<first_fit>);

struct interval {
  int lower, upper, size;
};
constexpr std::array<interval, 5> five{{{0, 3, 4}, {3, 9, 4}, {0, 9, 4}, {9, 21, 4}, {0, 21, 4}}};
static_assert(first_fit{}(five).arena_bytes == 12 && first_fit{}(five).status == plan_status::optimal);

std::vector<usage_record> random_records(std::mt19937_64& rng, bool alignments, bool gaps, bool fixed) {
  std::vector<usage_record> records(rng() % 40);
  for (auto& r : records) {
    r.lower = static_cast<std::int64_t>(rng() % 30) - 5;
    r.upper = r.lower + static_cast<std::int64_t>(rng() % 14);
    r.size = static_cast<std::int64_t>(rng() % 20);
    if (alignments) r.alignment = 1 + static_cast<std::int64_t>(rng() % 4);
    if (gaps && rng() % 2 == 0 && r.upper - r.lower > 4) {
      r.gaps.push_back({r.lower + 1, r.lower + 2, 0, 0});
      if (rng() % 2) r.gaps[0].window_lower = r.size / 3, r.gaps[0].window_upper = r.size / 2;
      if (rng() % 2) r.gaps.push_back({r.lower + 2, r.upper, 0, r.size / 2});
    }
    if (fixed && rng() % 10 == 0) r.offset = static_cast<std::int64_t>(rng() % 40) * r.alignment;
  }
  return records;
}

/// The bytes [first, second) of a record that it needs at a moment.
std::pair<std::int64_t, std::int64_t> needed(usage_record const& r, std::int64_t moment) {
  if (moment < r.lower || moment >= r.upper) return {0, 0};
  for (auto const& g : r.gaps)
    if (g.lower <= moment && moment < g.upper) return {g.window_lower, g.window_upper};
  return {0, r.size};
}

/// First fit said again: the rank from counting pairs, each offset tried from 0 up, every moment looked at.
std::vector<std::int64_t> by_the_word(std::vector<usage_record> const& records, fit_order order) {
  auto const n = records.size();
  std::int64_t full = 0;
  std::vector<std::int64_t> load(60, 0);
  for (std::int64_t t = -10; t < 50; ++t)
    for (auto const& r : records) load[static_cast<std::size_t>(t + 10)] += needed(r, t).second - needed(r, t).first;
  for (auto l : load) full = std::max(full, l);
  for (auto const& r : records)
    if (r.offset != any_offset) full = std::max(full, r.offset + r.size);
  auto const hull = [&](usage_record const& r) {
    std::pair<std::int64_t, std::int64_t> h{0, 0};
    for (auto t = r.lower; t < r.upper; ++t)
      if (needed(r, t).first < needed(r, t).second) h = {h.first == h.second ? t : h.first, t + 1};
    return h;
  };
  std::vector<double> key(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    auto const a = hull(records[i]);
    int degree = 0;
    std::int64_t total = 0;
    for (auto const& r : records)
      degree += hull(r).first < a.second && a.first < hull(r).second && hull(r).first < hull(r).second;
    // The load during a record's gaps counts too.
    for (auto t = a.first; t < a.second; ++t) total = std::max(total, load[static_cast<std::size_t>(t + 10)]);
    double const eighth = std::sqrt(std::sqrt(std::sqrt(static_cast<double>(degree))));
    key[i] = static_cast<double>(records[i].size) * detail::power(eighth, order.degree_eighths) *
             detail::power(static_cast<double>(total) / static_cast<double>(std::max<std::int64_t>(full, 1)),
                           order.load_power);
  }
  std::vector<std::size_t> by_rank;
  for (std::size_t i = 0; i < n; ++i)
    if (records[i].offset == any_offset && hull(records[i]).first < hull(records[i]).second) by_rank.push_back(i);
  std::stable_sort(by_rank.begin(), by_rank.end(), [&](auto a, auto b) { return key[a] > key[b]; });
  std::vector<std::int64_t> offsets(n, 0);
  std::vector<std::size_t> placed;
  for (std::size_t i = 0; i < n; ++i)
    if (records[i].offset != any_offset) offsets[i] = records[i].offset, placed.push_back(i);
  for (auto i : by_rank) {
    auto const& r = records[i];
    auto const fits = [&](std::int64_t x) {
      for (auto j : placed)
        for (auto t = r.lower; t < r.upper; ++t) {
          auto const [a, b] = needed(r, t);
          auto const [c, d] = needed(records[j], t);
          if (a < b && c < d && x + a < offsets[j] + d && offsets[j] + c < x + b) return false;
        }
      return true;
    };
    while (!fits(offsets[i])) offsets[i] += r.alignment;
    placed.push_back(i);
  }
  return offsets;
}

}  // namespace

TEST_CASE("offsets are those of first fit by the word, with alignment, gaps, windows and fixed records") {
  std::mt19937_64 rng(5);
  int compared = 0, refused = 0;
  for (int round = 0; round < 2000; ++round) {
    auto const records = random_records(rng, round & 1, round & 2, round & 4);
    fit_order const order{static_cast<int>(rng() % 9), static_cast<int>(rng() % 3) * 8};
    auto const plan = first_fit{order}(records);
    if (!has_offsets(plan)) {
      CHECK(plan.why.what == "it collides with another fixed record");
      CHECK(!has_offsets(greedy_by_size{}(records)));
      ++refused;
      continue;
    }
    ++compared;
    REQUIRE_MESSAGE(verify(records, plan).ok(), verify(records, plan).message());
    CHECK(plan.lower_bound_bytes == load_lower_bound(records).bytes);
    CHECK((plan.status == plan_status::optimal) == (plan.arena_bytes == plan.lower_bound_bytes));
    REQUIRE(plan.offsets == by_the_word(records, order));
  }
  CHECK(compared > 1000);
  CHECK(refused > 10);
}

TEST_CASE("gaps that the plateau rule cannot use are filled") {
  // Two records share bytes, one in the other's gap.
  std::vector<usage_record> records{{.lower = 0, .upper = 10, .size = 8, .gaps = {{3, 7, 0, 0}}},
                                    {.lower = 4, .upper = 6, .size = 8}};
  CHECK(first_fit{}(records).arena_bytes == 8);
  CHECK(first_fit{}(records).status == plan_status::optimal);
}

TEST_CASE("faulty records are refused") {
  std::vector<usage_record> records{{.lower = 3, .upper = 2, .size = 1}};
  CHECK(first_fit{}(records).why.message() == "record 0: its life ends before it begins");
}
