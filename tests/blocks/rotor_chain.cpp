#include <neap/blocks/rotor_chain.hpp>

#include "../support/random_chain.hpp"

#include <neap/blocks/time_rows.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

using namespace neap;

TEST_CASE("rotor chain: sizes in one unit, options that no other beats, equal blocks of one kind") {
  random_stream draw(3);
  int dropped = 0, shared = 0;
  for (int round = 0; round < 300; ++round) {
    auto chain = testing::random_chain(draw, {.blocks = 9, .options = 4, .kinds = 3, .left = round % 3 == 0 ? 4u : 0u});
    auto const scaled = [&](slots_t by) {
      auto c = chain;
      c.output *= by;
      for (auto& b : c.blocks) {
        b.input *= by, b.pass_temporary *= by, b.left *= by;
        for (auto& o : b.options) o.saved *= by, o.forward_temporary *= by, o.backward_temporary *= by;
      }
      return c;
    };
    detail::rotor_chain const one(chain, chain_limits::exact), twelve(scaled(12), chain_limits::exact);
    REQUIRE((twelve.unit == 12 * one.unit || (one.unit == 1 && twelve.unit % 12 == 0) || twelve.unit == 1));
    if (twelve.unit > 1) REQUIRE(one.input == twelve.input);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      auto const& kept = one.kind(i).options;
      auto const& all = chain.blocks[i].options;
      double fastest = 1e300;
      for (auto const& o : all) fastest = std::min(fastest, o.forward_time + o.backward_time);
      for (auto const& o : all) {
        bool covered = false;
        for (auto const& k : kept)
          covered |= k.extra <= o.forward_time + o.backward_time - fastest && k.saved * one.unit <= o.saved &&
                     k.forward * one.unit <= o.saved + o.forward_temporary &&
                     k.backward * one.unit <= o.saved + o.backward_temporary;
        REQUIRE(covered);
      }
      REQUIRE(std::any_of(kept.begin(), kept.end(), [](auto const& k) { return k.extra == 0; }));
      dropped += kept.size() < all.size();
      for (std::size_t k = 0; k < i; ++k) shared += one.kind_of[k] == one.kind_of[i];
      for (std::size_t j = i + 1; j + 1 < chain.size(); ++j) {
        // The limit in one step is that of all blocks passed at once.
        auto limit = one.pass_limit(i, chain.size() - 1, i + 1);
        for (std::size_t at = i + 2; at <= j; ++at) limit = one.next_limit(i, chain.size() - 1, at, limit);
        REQUIRE(limit == one.pass_limit(i, chain.size() - 1, j));
      }
    }
  }
  CHECK(dropped > 100);
  CHECK(shared > 100);
}

TEST_CASE("time rows: rooms grow with what is in them, zeros lie beyond, and the limit of memory holds") {
  detail::time_rows rows(1 << 20);
  int const width = 2 * detail::row_run;
  rows.start(width, 50);
  detail::time_row row;
  row.saturated = 40 * width - 3, row.whole = 40;
  CHECK(rows.known(row, -1) != nullptr);
  CHECK(*rows.known(row, -1) == HUGE_VAL);
  CHECK(rows.known(row, 0) == nullptr);
  CHECK(*rows.known(row, row.saturated) == 0);
  for (std::int32_t chunk = 0; chunk < row.whole; ++chunk) {
    rows.make_room(row, chunk + 1);
    for (int i = 0; i < width; ++i) row.times[chunk * width + i] = chunk * width + i < row.saturated ? 1 + chunk : 0;
    ++row.chunks;
    for (slots_t m = 0; m < row.chunks * slots_t{width} && m < row.saturated; ++m)
      REQUIRE(*rows.known(row, m) == 1.0 + static_cast<double>(m / width));
  }
  for (int i = 0; i < width; ++i) CHECK(rows.row(row, 40 * slots_t{width})[i] == 0);
  detail::time_row large;
  large.whole = 1 << 24;
  CHECK_THROWS_AS(rows.make_room(large, 1 << 22), detail::time_rows::too_large);
}
