#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>

#include <neap/mutate/chain.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/check_edit.hpp"
#include "../support/judged.hpp"
#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

TEST_CASE("every mutation of random graphs keeps what is computed, over walks of several") {
  std::size_t applied = 0, helped = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    random_graph_options o;
    o.copies = seed % 3;
    o.swaps = seed % 2;
    auto g = random_graph(seed, o);
    auto const order = reverse_post_order{}(g);
    auto const expected = run_symbolically(g, order);
    REQUIRE_MESSAGE(expected.error.empty(), expected.error);
    auto c = judged(g, order);
    random_stream draw(seed, 77);
    for (int step = 0; step < 4; ++step) {
      std::vector<candidate> next;
      auto const moves = chain(rematerialize{}, neap::swap{});
      auto stream = moves(c);
      while (auto m = stream.next()) {
        CAPTURE(seed);
        CAPTURE(step);
        CAPTURE(describe(*m, c));
        auto e = apply_mutation(*m, c);
        if (!e) continue;
        ++applied;
        require_same(*e, expected);
        auto again = apply_mutation(*m, c);  // replayed: the same
        REQUIRE(again->graph == e->graph);
        REQUIRE(again->order == e->order);
        next.push_back(judged(std::move(e->graph), std::move(e->order)));
        helped += next.back().result.peak_bytes < c.result.peak_bytes;
      }
      if (next.empty()) break;
      c = std::move(next[draw.below(static_cast<std::uint32_t>(next.size()))]);
    }
  }
  CHECK(applied > 1000);
  CHECK(helped > 100);
}

TEST_CASE("what is kept, updated or resident is never moved") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto g = random_graph(seed);
    auto c = judged(g, reverse_post_order{}(g));
    auto stream = rematerialize{}(c);
    while (auto m = stream.next()) {
      CHECK(!c.graph.is_resident(m->storage));
      for (auto v : c.graph.kept()) CHECK(c.graph.storage(v) != m->storage);
      for (auto v : c.graph.values())
        if (c.graph.record(v).alias == alias_kind::update) CHECK(c.graph.storage(v) != m->storage);
    }
  }
}
