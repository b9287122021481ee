#include <neap/blocks/remat_prices.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "../support/sanitized.hpp"
#include "remat_blocks.hpp"

using namespace neap;

TEST_CASE("no state's bound is above the least time from there, with the block's prices or with its own") {
  random_stream draw(17);
  int const rounds = testing::sanitized ? 300 : 3000;
  int compared = 0, raised = 0, met = 0;
  for (int round = 0; round < rounds; ++round) {
    auto const p = round % 2 ? testing::random_block(draw, 8) : testing::altered_chain(draw);
    if (p.values.size() > 11) continue;
    remat_limits limits{testing::drawn_peak(draw, p)};
    if (p.pause_after >= 0 && draw.below(2) == 0) limits.saved_bytes = 5 + draw.below(32);
    detail::remat_facts<1> const facts(p, limits);
    if (facts.hopeless) continue;
    detail::remat_prices<1> prices(facts);
    for (int state = 0; state < 6; ++state) {
      // Any values that can be there, and those that always are.
      std::size_t const t = draw.below(static_cast<std::uint32_t>(p.ops.size()));
      detail::value_set<1> alive;
      std::uint32_t start = 0;
      auto const made_by = producers(p);
      for (std::uint32_t v = 0; v < p.values.size(); ++v) {
        bool const ground = facts.number[v] == no_producer;
        bool const there = made_by[v] == no_producer || made_by[v] < t;
        if (!ground && !(there && draw.below(3) > 0)) continue;
        start |= 1u << v;
        if (!ground) alive.set(facts.number[v]);
      }
      double const least = testing::least_time(p, limits, t, start);
      double const before = facts.bound(t, alive);
      CAPTURE(round);
      CHECK(before <= least + 1e-6);
      double const found = prices.raise(facts, t, alive, 1e6, 40);
      CHECK(found <= least + 1e-6);
      if (!(least < std::numeric_limits<double>::infinity())) continue;
      ++compared;
      raised += found > before + 1e-6;
      met += found > least - 1e-6;
    }
  }
  MESSAGE(compared, " states, ", raised, " bounds raised, ", met, " met the least time");
  CHECK(compared > rounds);
  CHECK(raised > compared / 20);
}

TEST_CASE("the search stops at what is enough") {
  auto const p = testing::skip_chain(12, 3, 1);
  remat_limits const limits{testing::peak_once(p) * 60 / 100};
  detail::remat_facts<1> const facts(p, limits);
  REQUIRE(!facts.hopeless);
  detail::remat_prices<1> prices(facts);
  detail::value_set<1> alive;
  for (std::size_t v = 6; v < 12; ++v) alive.set(v);
  double const all = prices.raise(facts, 12, alive, 1e6, 100), one = prices.raise(facts, 12, alive, 0, 100);
  CHECK(one >= 0);
  CHECK(one < all);
}
