#include <neap/optimize/live_sets.hpp>

#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/exhaustive_order.hpp"
#include "../support/random_graph.hpp"
#include "../support/sanitized.hpp"
#include "../support/small_graph.hpp"
#include "../support/symbolic.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>

using namespace neap;
using namespace neap::testing;
using neap::detail::live_set_answer;
using neap::detail::live_sets;

namespace {

struct cost {
  template <class G>
  double operator()(G const& g, op_id o) const {
    return flow::is_view(g, o) ? 0 : 1e-3 * static_cast<double>(1 + index(g.origin(o)) % 3);
  }
};

plain_vector<bool> may_run_again(toy_graph const& g) {
  plain_vector<bool> may(g.op_count(), false);
  for (auto o : g.ops()) may[index(o)] = graph_traits<toy_graph>::is_recomputable(g, o);
  return may;
}
/// An answer as a graph and an order, simulated: it computes the same, and takes what the answer says.
simulation require_right(toy_graph const& g, live_sets const& all, live_set_answer const& a, memory_options options) {
  auto const order = reverse_post_order{}(g);
  auto const may = may_run_again(g);
  replay_builder replay(g, order, may);
  REQUIRE(all.tell(a, replay));
  auto const e = std::move(replay).finish();
  REQUIRE(e);
  auto const got = run_symbolically(e->graph, e->order);
  REQUIRE_MESSAGE(got.error.empty(), got.error);
  CHECK(got == run_symbolically(g, order));
  auto r = simulate(e->graph, e->order, cost{}, options);
  CHECK(r.peak_bytes <= a.peak);
  CHECK(r.latency <= a.seconds * (1 + 1e-12));
  return r;
}

search_options without_takeover(std::size_t iterations) {
  search_options o;
  o.memory = {.alignment = 1, .takeover = false};
  o.iterations = iterations;
  o.time = time_budget(std::chrono::seconds(600));
  return o;
}
constexpr auto moves = chain(rematerialize{} | truncate(16), reorder{} | truncate(8));

}  // namespace

TEST_CASE("the quickest within any limit and the smallest within any time are what trying all of it finds") {
  memory_options const plainly{.alignment = 1, .takeover = false};
  for (std::uint64_t seed = 0; seed < testing::cases(1500u); ++seed) {
    CAPTURE(seed);
    auto const g = small_graph(seed);
    flow_facts const facts(g, cost{}, plainly);
    pebble_game const game(facts);
    live_sets all(g, facts, may_run_again(g), 1'000'000);
    REQUIRE(all.is_small());
    auto const least = game.least_peak();
    auto const smallest = all.smallest(1e300);
    REQUIRE(smallest);
    CHECK(smallest->peak == least);
    CHECK(smallest->seconds == doctest::Approx(game.least_time(least)));
    auto const r = require_right(g, all, *smallest, plainly);
    CHECK(r.peak_bytes == least);
    CHECK_FALSE(all.quickest(least - 1));
    auto const plain = simulate(g, reverse_post_order{}(g), cost{}, plainly);
    for (auto const limit : {least, (least + plain.peak_bytes) / 2, plain.peak_bytes}) {
      auto const a = all.quickest(limit);
      REQUIRE(a);
      CHECK(a->peak <= limit);
      CHECK(a->seconds == doctest::Approx(game.least_time(limit)));
      CHECK(require_right(g, all, *a, plainly).latency == doctest::Approx(a->seconds));
      // And the other way round: nothing smaller is as quick.
      auto const b = all.smallest(a->seconds * (1 + 1e-12));
      REQUIRE(b);
      CHECK(b->seconds <= a->seconds * (1 + 1e-12));
      CHECK(b->peak <= a->peak);
      CHECK(game.least_time(b->peak - 1) > a->seconds * (1 + 1e-12));
    }
    CHECK_FALSE(all.smallest(plain.latency * 0.99));
  }
}

TEST_CASE("views, padded buffers, updates in place and takeovers: right, and no larger than the best order") {
  std::size_t searched = 0, below = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(1500u); ++seed) {
    CAPTURE(seed);
    auto const g = random_graph(seed, {.least_ops = 4, .max_ops = 10});
    memory_options const options{.alignment = seed % 2 ? 64 : 1, .takeover = seed % 3 != 0};
    flow_facts const facts(g, cost{}, options);
    live_sets all(g, facts, may_run_again(g), 300'000);
    if (!all.is_small()) continue;
    auto const a = all.smallest(1e300);
    if (!a) continue;
    ++searched;
    auto const r = require_right(g, all, *a, options);
    auto const best_order = simulate(g, exhaustive_order{}(facts), cost{}, options);
    CHECK(r.peak_bytes <= best_order.peak_bytes);
    below += r.peak_bytes < best_order.peak_bytes;
    if (auto const b = all.quickest(best_order.peak_bytes); b) CHECK(b->seconds <= best_order.latency * (1 + 1e-12));
  }
  MESSAGE(searched, " searched, ", below, " below the best order");
  if (testing::sanitized) return;
  CHECK(searched > 1000);
  CHECK(below > 20);
}

TEST_CASE("what is too large is left alone, and too many states are no answer") {
  auto const large = random_graph(1, {.least_ops = 300, .max_ops = 320});
  flow_facts const facts(large, cost{}, {});
  CHECK_FALSE(live_sets(large, facts, may_run_again(large)).is_small());
  auto const g = small_graph(3);
  flow_facts const of_small(g, cost{}, {});
  live_sets few(g, of_small, may_run_again(g), 3);
  CHECK(few.is_small());
  CHECK_FALSE(few.smallest(1e300));
}

TEST_CASE("a search of a small graph finds the best there is, under limits of memory, of latency, and none") {
  std::size_t all = 0, least = 0, quickest = 0, limits = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(1000u); ++seed) {
    CAPTURE(seed);
    auto const g = small_graph(seed);
    auto o = without_takeover(100);
    flow_facts const facts(g, cost{}, o.memory);
    pebble_game const game(facts);
    auto const best = game.least_peak();
    o.memory_at_most = memory_limit{0};
    auto const found = optimize(g, moves, o, cost{});
    CHECK(verify_plan(g, found.placed, cost{}).ok());
    CHECK(found.best.result.peak_bytes >= best);
    CHECK(found.best.result.peak_bytes <= found.original.peak_bytes);
    CHECK(found.lower_bound_bytes <= best);
    ++all, least += found.best.result.peak_bytes == best;
    for (auto const limit : {best, (best + found.original.peak_bytes) / 2}) {
      o.memory_at_most = memory_limit{limit};
      auto const within = optimize(g, moves, o, cost{});
      ++limits;
      CHECK(within.fits == (within.placed.arena_bytes <= limit));
      auto const time = game.least_time(limit);
      if (within.best.result.peak_bytes <= limit) CHECK(within.best.result.latency >= time * (1 - 1e-12));
      quickest += within.fits && within.best.result.latency <= time * (1 + 1e-12);
    }
  }
  MESSAGE(least, " of ", all, " the least peak, ", quickest, " of ", limits, " the least time");
  CHECK(least * 100 >= all * 99);
  CHECK(quickest * 100 >= limits * 98);  // addresses may need more than the peak
}
