#include <neap/blocks/use_intervals.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <utility>

using namespace neap;

TEST_CASE("moves of use intervals stay within them, and reach every pair of ends") {
  random_stream draw(4);
  for (bool last : {false, true}) {
    detail::use_interval const g{3, 10, 15, last};
    std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
    detail::interval_ends e{10, last ? 10u : 15u, true};
    for (int k = 0; k < 20'000; ++k) {
      e = detail::moved(g, e, draw);
      REQUIRE(e.until >= 10);
      REQUIRE(e.until <= 15);
      REQUIRE(e.since >= 10);
      REQUIRE(e.since <= 15);
      if (last) REQUIRE(e.since == 10);
      seen.insert({e.until, e.since});
      for (std::uint32_t t = 11; t <= 15; ++t)
        REQUIRE(detail::holds(g, e, t) == (t <= e.until || (!last && t > e.since)));
    }
    // Held throughout is one state, whatever the ends say.
    CHECK(seen.size() >= (last ? 6u : 16u));
  }
}

TEST_CASE("cooling: better scores are accepted, worse ones less and less") {
  random_stream draw(5);
  detail::cooling heat(10, 0.01, 1000);
  int early = 0, late = 0;
  for (int m = 0; m < 1000; ++m, heat.step()) {
    REQUIRE(heat.accepts(5, 5, draw));
    REQUIRE(heat.accepts(5, 4, draw));
    bool const worse = heat.accepts(5, 7, draw);
    if (m < 200) early += worse;
    if (m >= 800) late += worse;
  }
  CHECK(early > 120);
  CHECK(late < 5);
}
