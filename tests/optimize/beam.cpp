#include <neap/optimize/beam.hpp>

#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/deep_graph.hpp"
#include "../support/message.hpp"
#include "../support/random_graph.hpp"
#include "../support/sanitized.hpp"
#include "../support/small_graph.hpp"
#include "../support/symbolic.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>

using namespace neap;
using namespace neap::testing;

namespace {

struct gives_one {
  std::uint32_t operator()(std::span<waiting_candidate const>, search_standing const&) const { return 0; }
};
static_assert(search_strategy<beam> && !search_strategy<gives_one>);

/// Transfers take as long as three ops.
struct cost {
  template <class G>
  double operator()(G const& g, op_id o) const {
    return flow::is_view(g, o) ? 0 : flow::stream(g, o) == op_stream::compute ? 1e-3 : 3e-3;
  }
};

constexpr auto moves =
    chain(zip(rematerialize{} | truncate(16), neap::swap{1e6} | truncate(8)), reorder{} | truncate(4));

search_options limited(double memory, double latency, std::size_t iterations) {
  search_options o;
  if (memory >= 0) o.memory_at_most = memory_limit::of_original(memory);
  if (latency >= 0) o.latency_at_most = latency_limit::of_original(latency);
  o.iterations = iterations;
  o.time = time_budget(std::chrono::seconds(600));
  return o;
}

template <class A>
void check_same(A const& a, A const& b) {
  CHECK(a.best.graph == b.best.graph);
  CHECK(a.best.order == b.best.order);
  CHECK(a.placed.buffers == b.placed.buffers);
  CHECK(a.steps == b.steps);
  CHECK(a.candidates == b.candidates);
  CHECK(a.front == b.front);
  CHECK(a.history.size() == b.history.size());
}

}  // namespace

TEST_CASE("a beam expands evenly spaced ranks, keeps the rest in order, and forgets what is too bad") {
  std::vector<waiting_candidate> all;
  for (int k = 0; k < 10; ++k) all.push_back({100, 1.0, 5, static_cast<double>((7 * k) % 10)});
  search_standing now{{.memory = 50, .latency = 10, .limits_memory = true}, {40, 2}, true, 50, 64};
  auto const next = beam{.width = 3}(all, now);
  std::vector<double> expanded, kept;
  for (auto k : next.expand) expanded.push_back(all[k].estimate);
  for (auto k : next.keep) kept.push_back(all[k].estimate);
  CHECK(expanded == std::vector<double>{0, 3, 6});
  CHECK(kept == std::vector<double>{1, 2, 4, 5, 7, 8, 9});
  all[0].latency = 2.1, all[1].latency = 2.3;  // a tenth worse than the best may pass
  auto const fewer = beam{.width = 100}(all, now);
  CHECK(fewer.expand.size() == 9);
  CHECK(std::find(fewer.expand.begin(), fewer.expand.end(), 1u) == fewer.expand.end());
  now.fits = false;
  CHECK(beam{.width = 100}(all, now).expand.size() == 10);
  all[2].latency = 11.5;
  CHECK(beam{.width = 100}(all, now).expand.size() == 9);
  all[3].excess = 0;  // it meets a limit of memory
  CHECK(beam{.width = 100}(all, now).expand.size() == 8);
  now.goal.limits_memory = false;
  CHECK(beam{.width = 100}(all, now).expand.size() == 9);
  CHECK(beam{}({}, now).expand.empty());
}

TEST_CASE("plans of a beam are right, and compute what the program computes") {
  int fit = 0, changed = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(40u); ++seed) {
    CAPTURE(seed);
    auto const g = random_graph(seed, {.least_ops = 20});
    auto const expected = run_symbolically(g, reverse_post_order{}(g));
    for (auto const& [memory, latency] : {std::pair{0.8, -1.0}, {-1.0, 1.2}, {0.9, 1.3}}) {
      auto const found = optimize(g, moves, limited(memory, latency, 200), cost{}, beam{.width = 4});
      auto const verdict = verify_plan(g, found.placed);
      REQUIRE_MESSAGE(verdict.ok(), verdict.message());
      CHECK(found.fits == (found.placed.arena_bytes <= found.memory_limit_bytes &&
                           found.best.result.latency <= found.latency_limit_seconds * (1 + 1e-12)));
      CHECK(found.candidates <= 200 + 8);
      CHECK(run_symbolically(found.placed.graph, found.placed.order()) == expected);
      fit += found.fits, changed += !found.steps.empty();
    }
  }
  CHECK(fit > (testing::sanitized ? 1 : 40));
  CHECK(changed > (testing::sanitized ? 1 : 40));
}

TEST_CASE("a beam fits where dives fit nearly always: limits of memory, of latency, of both") {
  int all = 0, fit = 0, dives_fit = 0, better = 0, worse = 0;
  double quotients = 0;
  for (std::uint64_t seed = 0; seed < (testing::sanitized ? 3 : 24); ++seed) {
    CAPTURE(seed);
    auto const g =
        deep_graph({.layers = 5 + seed % 8, .mixed = true, .skip = seed % 3, .long_skip = seed % 2, .seed = seed})
            .program;
    for (auto const& [memory, latency] : {std::pair{0.8, -1.0}, {0.6, -1.0}, {-1.0, 1.1}, {-1.0, 1.3}, {0.7, 1.3}}) {
      auto const o = limited(memory, latency, 500);
      auto const found = optimize(g, moves, o, given_latencies{}, beam{.width = 4});
      auto const dives = optimize(g, moves, o, given_latencies{});
      CHECK(verify_plan(g, found.placed).ok());
      ++all, fit += found.fits, dives_fit += dives.fits;
      if (!found.fits || !dives.fits) continue;
      auto const of = [&](auto const& x) {
        return memory >= 0 ? x.best.result.latency : static_cast<double>(x.best.result.peak_bytes);
      };
      better += of(found)<of(dives), worse += of(found)> of(dives), quotients += of(found) / of(dives);
    }
  }
  MESSAGE("of ", all, ": ", fit, " fit, of dives ", dives_fit, "; better ", better, ", worse ", worse, ", in the mean ",
          quotients / all);
  CHECK(dives_fit > all / 2);
  CHECK(fit >= dives_fit * 9 / 10);
}

TEST_CASE("no peak is below the least that recomputation in any order can reach, and most are that") {
  int best = 0, dives_best = 0, all = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(150u); ++seed) {
    CAPTURE(seed);
    auto const g = small_graph(seed);
    memory_options const plainly{.alignment = 1, .takeover = false};
    flow_facts const facts(g, no_cost{}, plainly);
    auto const least = pebble_game(facts).least_peak();
    auto o = limited(0, -1, 400);
    o.memory = plainly;
    auto const free_moves = chain(rematerialize{} | truncate(16), reorder{} | truncate(8));
    auto const found = optimize(g, free_moves, o, cost{}, beam{.width = 4});
    auto const dives = optimize(g, free_moves, o, cost{});
    CHECK(found.best.result.peak_bytes >= least);
    CHECK(found.lower_bound_bytes <= least);
    ++all, best += found.best.result.peak_bytes == least, dives_best += dives.best.result.peak_bytes == least;
  }
  MESSAGE("the least peak: ", best, " of ", all, ", dives ", dives_best);
  CHECK(best > all * 4 / 5);
}

TEST_CASE("a beam gives the same answer twice, and for any number of threads") {
  std::size_t changed = 0;
  for (std::uint64_t seed = 0; seed < (testing::sanitized ? 2 : 8); ++seed) {
    CAPTURE(seed);
    auto const g = random_graph(seed, {.least_ops = 30});
    for (auto const& [memory, latency] : {std::pair{0.6, -1.0}, {-1.0, 1.2}, {0.2, -1.0}}) {
      auto o = limited(memory, latency, 200 + 37 * seed);
      o.strategy = beam{.width = 3};
      auto const one = optimize(g, moves, o, cost{});
      changed += !one.steps.empty();
      check_same(one, optimize(g, moves, o, cost{}));
      for (unsigned threads : {2u, 4u}) {
        o.threads = threads;
        check_same(one, optimize(g, moves, o, cost{}));
      }
    }
  }
  CHECK(changed > (testing::sanitized ? 2 : 8));
}

TEST_CASE("a clock and a stop token end a beam") {
  auto const g = random_graph(9, {.least_ops = 200, .max_ops = 220});
  auto o = limited(0.2, -1, SIZE_MAX);
  o.strategy = beam{};
  o.time = time_budget(std::chrono::milliseconds(150));
  auto const begin = std::chrono::steady_clock::now();
  CHECK(verify_plan(g, optimize(g, moves, o, cost{}).placed).ok());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  std::stop_source stop;
  o.time = time_budget(std::chrono::seconds(600));
  o.stop = stop.get_token();
  o.progress = [&](search_progress const& p) {
    if (p.candidates > 300) stop.request_stop();
  };
  o.progress_every = 1e-6;
  CHECK(optimize(g, moves, o, cost{}).candidates >= 300);
}

TEST_CASE("a strategy of one's own: which candidates go on, and which are forgotten, is what it says") {
  auto const g = random_graph(4, {.least_ops = 30});
  auto const o = limited(0.3, -1, 300);
  // Whatever came last.
  auto const last = [](std::span<waiting_candidate const> all, search_standing const& now) {
    CHECK(now.room >= 2);
    search_round next;
    if (!all.empty()) next.expand.push_back(static_cast<std::uint32_t>(all.size() - 1));
    for (std::uint32_t k = 0; k + 1 < all.size(); ++k) next.keep.push_back(k);
    return next;
  };
  auto const found = optimize(g, moves, o, cost{}, last);
  CHECK(verify_plan(g, found.placed).ok());
  CHECK(found.candidates > 50);
  // None: what seeds have led to is the answer.
  auto const none = optimize(g, moves, o, cost{},
                             [](std::span<waiting_candidate const>, search_standing const&) { return search_round{}; });
  CHECK(verify_plan(g, none.placed).ok());
  CHECK(none.profile.drawn < found.profile.drawn);
  // One that is not there.
  CHECK(message_of([&] {
          (void)optimize(g, moves, o, cost{}, [](std::span<waiting_candidate const> all, search_standing const&) {
            search_round next;
            next.expand.push_back(static_cast<std::uint32_t>(all.size()));
            return next;
          });
        }) == "optimize: the strategy names a candidate that is not in its list");
}
