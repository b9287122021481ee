#include <neap/blocks/block_phases.hpp>

#include <neap/core/philox.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

using namespace neap;

namespace {

/// Blocks in a row with options, each of which reads some of the data before it.
block_graph row_of_blocks(random_stream& draw, std::uint32_t blocks) {
  block_graph g;
  for (std::uint32_t k = 0; k < blocks; ++k) {
    graph_block b;
    for (std::uint32_t d = 0; d < g.bytes.size(); ++d)
      if (d + 3 >= g.bytes.size() && draw.below(3) != 0) b.reads.push_back(d);
    b.makes.push_back(static_cast<std::uint32_t>(g.bytes.size()));
    g.bytes.push_back(1 + draw.below(9));
    g.move_time.push_back(draw.below(2) ? 3.0 : -1.0);
    b.pass_time = 1 + draw.below(5), b.pass_peak = g.bytes.back();
    for (auto n = 1 + draw.below(3); n > 0; --n) {
      graph_block_option o;
      o.forward_time = b.pass_time, o.backward_time = 2 * b.pass_time;
      o.saved = draw.below(9);
      o.forward_peak = b.pass_peak + o.saved, o.backward_peak = o.saved + 2;
      o.again_time = 1, o.again_peak = g.bytes.back();
      o.again_reads = b.reads, o.backward_reads = b.reads;
      b.options.push_back(o);
    }
    g.blocks.push_back(b);
  }
  g.before.assign(2 * blocks, 0), g.during.assign(2 * blocks, 0);
  return g;
}

}  // namespace

TEST_CASE("phases counted move by move are those of the same place counted from nothing; a move is taken back") {
  random_stream draw(6);
  int moves = 0, undone = 0;
  for (int round = 0; round < 60; ++round) {
    auto const g = row_of_blocks(draw, 2 + draw.below(7));
    REQUIRE(check(g).ok());
    detail::block_phases state(g);
    for (int step = 0; step < 60; ++step) {
      auto const before = state.where();
      auto const time = state.time();
      auto const peak = state.peak();
      state.keep();
      for (auto n = 1 + draw.below(2); n > 0; --n) {
        if (!state.facts().intervals.empty() && draw.below(2)) {
          auto const i = draw.below(static_cast<std::uint32_t>(state.facts().intervals.size()));
          auto const& gap = state.facts().intervals[i];
          auto ends = detail::moved(gap, state.ends(i), draw);
          ends.away = !gap.last && state.facts().can_leave(gap.value) && draw.below(3) == 0;
          state.set_interval(i, ends);
        } else {
          auto const k = draw.below(state.facts().blocks);
          state.set_block(k, {draw.below(static_cast<std::uint32_t>(g.blocks[k].options.size())),
                              k + draw.below(state.facts().back_of(k) - k + 1)});
        }
      }
      if (!state.moved()) continue;
      state.evaluate();
      ++moves;
      detail::block_phases afresh(g);
      afresh.restore(state.where());
      REQUIRE(afresh.time() == doctest::Approx(state.time()));
      REQUIRE(afresh.peak() == state.peak());
      auto const answer = afresh.answer();
      CHECK(answer.time == state.time());
      CHECK(answer.peak == state.peak());
      if (draw.below(2)) continue;
      state.roll_back();
      ++undone;
      REQUIRE(state.where().ends == before.ends);
      REQUIRE(state.where().choices == before.choices);
      REQUIRE(state.time() == time);
      REQUIRE(state.peak() == peak);
    }
  }
  CHECK(moves > 1000);
  CHECK(undone > 500);
}
