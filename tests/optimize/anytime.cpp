// More effort continues the same search: the candidates of a shorter one begin those of a longer one, and an answer never
// gets worse.
#include <neap/optimize/optimize.hpp>

#include "../support/quality_row.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

using namespace neap;

namespace {

optimized search(testing::quality_graph const& g, double memory, double latency, std::size_t iterations,
                 std::chrono::duration<double> seconds = std::chrono::hours(1000), unsigned threads = 1,
                 search_policy const& policy = {}) {
  search_options options;
  options.policy = policy;
  auto cost = given_or{roofline::h100_like()};
  cost.other.to_host_bytes_per_second = cost.other.to_device_bytes_per_second = std::max(g.link, 1.0);
  if (memory > 0) options.memory_at_most = memory_limit::of_original(memory);
  if (latency > 0) options.latency_at_most = latency_limit::of_original(latency);
  options.starts = solver_seeds(all_solvers);
  options.time = time_budget(seconds);
  options.iterations = iterations;
  options.threads = threads;
  return optimize(g.program, default_moves_with_fission(g.link), cost, g.order, options);
}

/// Whether `b` is a worse answer than `a` to the same limits.
bool worse(optimized const& b, optimized const& a, bool limits_memory) {
  if (a.fits != b.fits) return a.fits;
  if (a.fits && limits_memory) return b.best.result.latency > a.best.result.latency * (1 + 1e-9);
  return b.placed.arena_bytes > a.placed.arena_bytes;
}

bool begins_with(std::vector<std::uint64_t> const& all, std::vector<std::uint64_t> const& some) {
  return some.size() <= all.size() && std::equal(some.begin(), some.end(), all.begin());
}

struct limits {
  double memory, latency;
};
constexpr limits tried[] = {{0.7, 0}, {0.4, 0}, {0.2, 0}, {0, 1.1}, {0.5, 1.2}};

}  // namespace

TEST_CASE("a search with more iterations begins with what one with fewer did, and is no worse") {
  auto const graphs = testing::quality_graphs(NEAP_SOURCE_DIR);
  std::size_t continued = 0;
  for (auto const& g : graphs) {
    if (g.name != "nested3" && g.name != "chain200" && g.name != "random_model3" && g.name != "u80") continue;
    for (auto const& [memory, latency] : tried) {
      CAPTURE(g.name);
      CAPTURE(memory);
      CAPTURE(latency);
      auto before = search(g, memory, latency, 50);
      for (std::size_t const iterations : {200, 1000, 4000}) {
        CAPTURE(iterations);
        auto now = search(g, memory, latency, iterations);
        CHECK(begins_with(now.trail, before.trail));
        CHECK_FALSE(worse(now, before, memory > 0));
        continued += now.trail.size() > before.trail.size();
        before = std::move(now);
      }
    }
  }
  CHECK(continued > 0);
}

TEST_CASE("the best before is not lost where its transfers can be hidden better than those of what surpasses it") {
  search_policy policy;
  policy.price_reduction.price = 0.42;  // then the search comes by such a pair
  auto const graphs = testing::quality_graphs(NEAP_SOURCE_DIR);
  auto const& g = *std::ranges::find(graphs, "random_model3", &testing::quality_graph::name);
  auto const far = std::chrono::hours(1000);
  auto const before = search(g, 0.7, 0, 200, far, 1, policy), now = search(g, 0.7, 0, 500, far, 1, policy);
  CHECK(begins_with(now.trail, before.trail));
  CHECK_FALSE(worse(now, before, true));
}

TEST_CASE("a limit in seconds only cuts") {
  std::size_t const many = 6000;
  auto const graphs = testing::quality_graphs(NEAP_SOURCE_DIR);
  for (auto const& g : graphs) {
    if (g.name != "nested4" && g.name != "mixed120") continue;
    for (double const memory : {0.5, 0.3}) {
      CAPTURE(g.name);
      CAPTURE(memory);
      auto const longest = search(g, memory, 0, many);
      for (double const seconds : {0.02, 0.1}) {
        auto const cut = search(g, memory, 0, many, std::chrono::duration<double>(seconds));
        CHECK(begins_with(longest.trail, cut.trail));
        CHECK_FALSE(worse(longest, cut, true));
      }
    }
  }
}

TEST_CASE("threads change neither candidates nor answers, wherever iterations end a search") {
  auto const graphs = testing::quality_graphs(NEAP_SOURCE_DIR);
  for (auto const& g : graphs) {
    if (g.name != "nested3" && g.name != "random_model1") continue;
    for (std::size_t const iterations : {37, 500, 1501}) {
      auto const one = search(g, 0.4, 0, iterations),
                 three = search(g, 0.4, 0, iterations, std::chrono::hours(1000), 3);
      CHECK(one.trail == three.trail);
      CHECK(one.candidates == three.candidates);
      CHECK(testing::steps_digest(one.placed) == testing::steps_digest(three.placed));
    }
  }
}
