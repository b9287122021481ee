#include <neap/memory/streams/streams.hpp>

#include "brute_streams.hpp"

#include <neap/memory/check/check.hpp>
#include <neap/memory/exact/exact.hpp>
#include <neap/memory/forms/double_buffer.hpp>
#include <neap/memory/streams/check_streams.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

using namespace neap;
using namespace neap_memory_test;

TEST_CASE("arenas over happens-before equal brute force: alignment, gaps and fixed offsets, hand-overs free or none") {
  std::mt19937_64 rng(21);
  int above = 0, handed = 0, infeasible = 0, gaps = 0, to_and_fro = 0, lent = 0;
  for (int round = 0; round < rounds; ++round) {
    // Everything at once in every other round; apart in turn in the others.
    bool const tight = round % 2 == 1, across = round / 2 % 4 != 0;
    kind const k{tight || round / 8 % 2 == 1, tight || round / 16 % 2 == 1, tight || round / 32 % 2 == 1,
                 round / 64 % 2 == 1};
    std::vector<stream_record> records;
    std::int64_t bound = 0, optimum = 0;
    // Of every other problem, the optimum must lie above the bound.
    for (int attempt = 0; attempt < 60; ++attempt) {
      records = random_streams(rng, k, tight ? 3 : 2, 4);
      stream_board board(records, across);
      bound = board.load(), optimum = board.optimum();
      if (!tight || optimum > bound || (round % 16 == 1 && optimum < 0)) break;
    }
    stream_options options;
    if (!across) options.price_bytes = stream_options::no_hand_over;
    auto const found = plan_streams(records, options);
    for (auto const& r : records) gaps += !r.gaps.empty();
    if (optimum < 0) {
      ++infeasible;
      REQUIRE(found.plan.status == plan_status::infeasible);
      REQUIRE(found.plan.why.other > found.plan.why.record);
      continue;
    }
    above += optimum > bound;
    REQUIRE(found.plan.status == plan_status::optimal);
    REQUIRE(found.plan.arena_bytes == optimum);
    REQUIRE_MESSAGE(verify(records, found).ok(), verify(records, found).message());
    if (!across) REQUIRE(found.waits.empty());
    handed += !found.waits.empty();
    for (auto const& w : found.waits)
      to_and_fro += std::count(found.waits.begin(), found.waits.end(), stream_wait{w.later, w.earlier}) > 0;
    if (k.windows && round % 4 == 1) {  // what windows lend out makes arenas smaller
      auto whole = records;
      for (auto& r : whole) std::erase_if(r.gaps, [](stream_gap const& g) { return g.window_upper > g.window_lower; });
      if (auto const dear = plan_streams(whole, options).plan; has_offsets(dear)) lent += dear.arena_bytes > optimum;
    }
    options.capacity = optimum;
    auto const within = plan_streams(records, options);
    REQUIRE(has_offsets(within.plan));
    REQUIRE(within.plan.arena_bytes <= optimum);
    REQUIRE(verify(records, within).ok());
    options.capacity = optimum - 1;
    REQUIRE(plan_streams(records, options).plan.status == plan_status::infeasible);
  }
  MESSAGE(rounds << " problems, " << above << " with an optimum above the bound, " << infeasible << " infeasible, "
                 << handed << " with hand-overs across streams, " << to_and_fro / 2 << " of them to and fro, " << gaps
                 << " records with gaps, " << lent << " arenas smaller by windows");
  CHECK(above * 3 >= rounds);
  CHECK(handed * 10 >= rounds);
  CHECK(infeasible * 100 >= rounds);
  CHECK(gaps * 2 >= rounds);
  CHECK(to_and_fro > 0);
  CHECK(lent * 1000 >= rounds);
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

namespace {

/// The least of arena plus price a wait over all placements.
struct priced_board {
  std::vector<stream_record> const& records;
  std::int64_t price, best;
  stream_board rules;
  priced_board(std::vector<stream_record> const& r, std::int64_t p, std::int64_t most)
      : records(r),
        price(p),
        best(most),
        rules(r, true) {}
  void place(std::size_t k, std::int64_t cost_of_waits, std::int64_t top) {
    if (top + cost_of_waits >= best) return;
    if (k == records.size()) {
      best = top + cost_of_waits;
      return;
    }
    stream_record const& r = records[k];
    bool const fixed = r.offset != any_offset;
    for (std::int64_t x = fixed ? r.offset : 0; x + r.size < best; x += r.alignment) {
      bool good = true;
      std::int64_t waits = 0;
      for (std::size_t j = 0; good && j < k; ++j) {
        auto const& q = records[j];
        if (x + r.size <= rules.at[j] || rules.at[j] + q.size <= x || r.size == 0 || q.size == 0) continue;
        good = rules.apart[k] >> j & 1;
        bool forth = false, back = false;
        for (auto const& u : lives_of(q))
          for (auto const& v : lives_of(r)) forth |= frees_for(u, v), back |= frees_for(v, u);
        if (q.stream != r.stream) waits += forth + back;
      }
      rules.at[k] = x;
      if (good) place(k + 1, cost_of_waits + price * waits, r.size > 0 || fixed ? std::max(top, x + r.size) : top);
      if (fixed) break;
    }
  }
};

}  // namespace

TEST_CASE("waits at a price: never dearer than free hand-over or none, nearly always as cheap as can be") {
  std::mt19937_64 rng(24);
  int least = 0, between = 0, told = 0;
  int const some = 1500 + rounds / 50;
  for (int round = 0; round < some; ++round) {
    auto const records = random_streams(rng, {round % 2 == 1, round / 2 % 2 == 1, round / 4 % 2 == 1}, 3, 3);
    std::int64_t const price = 1 + static_cast<std::int64_t>(rng() % 4);
    auto const cost = [&](stream_plan const& x) {
      return x.plan.arena_bytes + price * static_cast<std::int64_t>(x.waits.size());
    };
    auto const free = plan_streams(records),
               none = plan_streams(records, {.price_bytes = stream_options::no_hand_over});
    auto const priced = plan_streams(records, {.price_bytes = price});
    REQUIRE(priced.plan.status == (!has_offsets(free.plan)                            ? plan_status::infeasible
                                   : priced.plan.arena_bytes == free.plan.arena_bytes ? plan_status::optimal
                                                                                      : plan_status::feasible));
    if (!has_offsets(free.plan)) continue;
    REQUIRE_MESSAGE(verify(records, priced).ok(), verify(records, priced).message());
    REQUIRE(cost(priced) <= cost(free));
    if (has_offsets(none.plan)) REQUIRE(cost(priced) <= cost(none));
    priced_board board(records, price, cost(priced) + 1);
    board.place(0, 0, 0);
    REQUIRE(cost(priced) >= board.best);
    ++told, least += cost(priced) == board.best;
    between += cost(priced) < cost(free) && (!has_offsets(none.plan) || cost(priced) < cost(none));
  }
  MESSAGE(told << " priced, " << least << " as cheap as can be, " << between << " cheaper than both extremes");
  CHECK(least * 20 >= told * 19);
  CHECK(between * 200 >= told);
}

TEST_CASE("one stream with gaps, alignment and fixed offsets is the interval problem") {
  std::mt19937_64 rng(23);
  int fitted = 0;
  for (int round = 0; round < rounds / 50; ++round) {
    auto const plain = random_records(rng, {true, true, true, round % 2 == 1});
    std::vector<stream_record> streamed;
    for (auto const& r : plain) {
      streamed.push_back(
          {.size = r.size, .alignment = r.alignment, .offset = r.offset, .born = {r.lower}, .dies = {r.upper}});
      for (auto const& g : r.gaps)
        streamed.back().gaps.push_back({{g.lower}, {g.upper}, g.window_lower, g.window_upper});
    }
    auto const plan = plan_streams(streamed).plan;
    auto const expected = exact{}(plain);
    REQUIRE(plan.status == expected.status);
    REQUIRE(plan.arena_bytes == expected.arena_bytes);
    if (!has_offsets(plan)) continue;
    ++fitted;
    REQUIRE_MESSAGE(verify(plain, plan).ok(), verify(plain, plan).message());
  }
  CHECK(fitted > rounds / 100);
}

TEST_CASE("faulty records are refused with the record and what is wrong") {
  auto const said = [](std::vector<stream_record> const& records) { return plan_streams(records).plan.why.message(); };
  stream_record const good{.size = 4, .born = {0, 0}, .dies = {1, 1}};
  CHECK(said({good}).empty());
  CHECK(said({{.size = 1, .born = {0}, .dies = {1}}, good}) == "record 1: its clocks have another number of streams");
  CHECK(said({{.size = 1}}) == "record 0: its clocks have another number of streams");
  CHECK(said({good, {.size = 1, .born = {3, 0}, .dies = {3, 0}}}) == "record 1: its death is not after its birth");
  auto bad = good;
  bad.gaps = {{{2, 0}, {1, 0}}};
  CHECK(said({bad}) == "record 0: a gap ends before it begins");
  bad.gaps = {{{0, 0}, {0, 0}}};
  CHECK(said({bad}) == "record 0: a part of its life ends before it begins");
  bad.gaps = {{{1, 0}, {1, 0}, 2, 5}};
  CHECK(said({bad}) == "record 0: a gap's window is outside the record");
  bad.gaps = {{{1}, {1, 0}}};
  CHECK(said({bad}) == "record 0: its clocks have another number of streams");
  bad = good, bad.offset = 6, bad.alignment = 4;
  CHECK(said({bad}) == "record 0: its fixed offset is not aligned");
  bad = good, bad.offset = -2;
  CHECK(said({bad}) == "record 0: its fixed offset is negative");
  auto low = good, high = good;
  low.offset = 2, high.offset = 5;
  CHECK(said({good, low, high}) == "records 1 and 2: they are fixed on the same bytes and may live at once");
  high.offset = 6;
  CHECK(said({good, low, high}).empty());
  low.dies = {1, 0}, high.born = {1, 0}, high.dies = {2, 0}, high.offset = 5;  // one after the other
  CHECK(said({low, high}).empty());
  low.stream = 1;
  CHECK(plan_streams(std::vector{low, high}, {.price_bytes = stream_options::no_hand_over}).plan.why.message() ==
        "records 0 and 1: they are fixed on the same bytes and may live at once");
  CHECK(plan_streams(std::vector{low, high}, {.price_bytes = 1000}).waits == std::vector<stream_wait>{{0, 1}});
}

namespace {

/// A user's type with what it needs and no more.
struct short_lived {
  int size;
  std::array<int, 2> born, dies;
};
static_assert(stream_usage<short_lived> && stream_usage<stream_record> && !stream_usage<usage_record>);

}  // namespace

TEST_CASE("any type with a size and clocks is a record; absent properties take no column") {
  std::array<short_lived, 3> const records{{{4, {0, 0}, {1, 0}}, {4, {1, 0}, {2, 0}}, {2, {0, 0}, {2, 1}}}};
  stream_problem const p(records);
  CHECK((p.alignment.empty() && p.fixed.empty() && p.stream.empty() && p.pool.empty() && p.part_begin.empty()));
  auto const plan = plan_streams(p);
  CHECK(plan.plan.arena_bytes == 6);
  CHECK(verify(p, plan).ok());
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
