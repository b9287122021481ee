#include <neap/mutate/undo_moves.hpp>

#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/check_edit.hpp"
#include "../support/judged.hpp"
#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

namespace {

/// Whether some mutations of a mutator, one after another, lead from a candidate to a graph.
template <class M>
bool leads_back(candidate const& c, M const& moves, digest to, int depth) {
  auto stream = moves(c);
  while (auto m = stream.next()) {
    auto e = apply_mutation(*m, c);
    if (!e) continue;
    if (e->graph.digest() == to) return true;
    if (depth > 1 && leads_back(judged(std::move(e->graph), std::move(e->order)), moves, to, depth - 1)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("undo moves and moves in the order keep what is computed") {
  std::size_t undone = 0, moved = 0, better = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    random_graph_options o;
    o.copies = 1 + seed % 3;
    o.swaps = seed % 3;
    auto const g = random_graph(seed, o);
    auto const order = reverse_post_order{}(g);
    auto const expected = run_symbolically(g, order);
    REQUIRE_MESSAGE(expected.error.empty(), expected.error);
    auto const c = judged(g, order);
    CAPTURE(seed);
    auto stream = chain(de_rematerialize{}, de_swap{})(c);
    while (auto m = stream.next()) {
      CAPTURE(describe(*m, c));
      auto e = apply_mutation(*m, c);
      if (!e) continue;
      require_same(*e, expected);
      REQUIRE(e->graph.op_count() < g.op_count());
      ++undone;
    }
    auto moves = reorder{}(c);
    while (auto m = moves.next()) {
      CAPTURE(describe(*m, c));
      auto const e = apply_mutation(*m, c);
      REQUIRE(e);
      require_same(*e, expected);
      ++moved, better += simulate(e->graph, e->order, unit_cost{}).peak_bytes < c.result.peak_bytes;
    }
  }
  CHECK(undone > 200);
  CHECK(moved > 100);
  CHECK(better > 50);
}

TEST_CASE("every recomputation and every swap can be taken back") {
  std::size_t recomputed = 0, back = 0, swapped = 0, waited = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    random_graph_options o;
    o.opaque = false;  // copies of other ops with the same digest would be shared as well
    auto const g = random_graph(seed, o);
    auto const c = judged(g, reverse_post_order{}(g));
    CAPTURE(seed);
    auto stream = rematerialize{}(c);
    while (auto m = stream.next())
      if (auto e = apply_mutation(*m, c)) {
        auto const copies = e->graph.op_count() > g.op_count() ? e->graph.op_count() - g.op_count() : 0;
        if (copies == 0 || copies > 3) continue;
        ++recomputed;
        back += leads_back(judged(std::move(e->graph), std::move(e->order)), de_rematerialize{}, g.digest(),
                           static_cast<int>(copies));
      }
    auto swaps = neap::swap{}(c);
    while (auto m = swaps.next())
      if (auto e = apply_mutation(*m, c)) {
        std::size_t waits = 0;
        for (auto x : e->graph.ops()) waits += e->graph.template as<op::wait>(x) != nullptr;
        waited += waits;
        if (e->graph.op_count() != g.op_count() + 2 + waits) continue;  // views made again on the loaded copy
        ++swapped;
        CHECK(leads_back(judged(std::move(e->graph), std::move(e->order)), de_swap{}, g.digest(), 1));
      }
  }
  CHECK(recomputed > 20);
  CHECK(back * 10 >= recomputed * 9);  // the rest: copies of what is written in place later
  CHECK(swapped > 20);
  CHECK(waited > 5);
}
