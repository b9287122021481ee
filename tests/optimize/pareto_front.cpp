#include <neap/optimize/pareto_front.hpp>

#include <neap/core/philox.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/simulate/roofline.hpp>

#include "../support/deep_graph.hpp"
#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

/// Those that no other point is at least as good as in both; of equal ones, one. By rising peak.
std::vector<plan_cost> slow_front(std::vector<plan_cost> const& all) {
  std::vector<plan_cost> front;
  for (auto const& p : all) {
    bool const beaten = std::any_of(all.begin(), all.end(), [&](plan_cost const& q) {
      return !(q == p) && q.peak_bytes <= p.peak_bytes && q.latency <= p.latency;
    });
    if (!beaten && std::find(front.begin(), front.end(), p) == front.end()) front.push_back(p);
  }
  std::sort(front.begin(), front.end(),
            [](plan_cost const& a, plan_cost const& b) { return a.peak_bytes < b.peak_bytes; });
  return front;
}

given_or<roofline> const cost{roofline::host(2)};
graph model(std::size_t layers, std::uint64_t seed) {
  return deep_graph({.layers = layers, .mixed = true, .skip = seed % 3, .seed = seed}).program;
}
constexpr auto moves = zip(rematerialize{} | truncate(16), neap::swap{1e9} | truncate(16));

search_options limited(double ratio) {
  search_options o;
  o.memory_at_most = memory_limit::of_original(ratio);
  o.iterations = 150;
  o.time = time_budget(std::chrono::seconds(60));
  return o;
}

}  // namespace

TEST_CASE("a front is what brute force finds, after each point, in whatever order they come") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    random_stream draw(seed, 0);
    auto const sizes = 2 + draw() % 40;  // few: many points are equal in one or both
    std::vector<plan_cost> all;
    pareto_front front;
    for (int k = 0; k < 60; ++k) {
      plan_cost const p{static_cast<bytes_t>(draw() % sizes), 0.125 * static_cast<double>(draw() % sizes)};
      auto const before = front.points();
      all.push_back(p);
      bool const entered = front.add(p);
      CHECK(entered == (front.points() != before));
      REQUIRE(front.points() == slow_front(all));
    }
    pareto_front backwards;
    for (auto i = all.size(); i-- > 0;) backwards.add(all[i]);
    CHECK(backwards.points() == front.points());
  }
}

TEST_CASE("a search's front holds what it judged: the original, every best one, nothing that another beats") {
  std::size_t points = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    auto const g = model(6 + seed % 7, seed);
    for (double ratio : {0.8, 0.4}) {
      auto const found = optimize(g, moves, limited(ratio), cost);
      REQUIRE(!found.front.empty());
      CHECK(slow_front(found.front) == found.front);
      auto const reached = [&](bytes_t peak, seconds_t latency) {
        return std::any_of(found.front.begin(), found.front.end(), [&](plan_cost const& p) {
          return p.peak_bytes <= peak && p.latency <= latency * (1 + 1e-12);
        });
      };
      CHECK(reached(found.original.peak_bytes, found.original.latency));
      for (auto const& h : found.history) CHECK(reached(h.peak_bytes, h.latency));
      CHECK(found.front.size() <= found.candidates + 1);  // and the transfers of the answer placed anew
      CHECK(found.front.front().peak_bytes >= found.lower_bound_bytes);
      if (found.fits && found.placed.arena_bytes == found.placed.peak_bytes)
        CHECK(reached(found.placed.peak_bytes, found.placed.latency));
      points += found.front.size();
    }
  }
  CHECK(points > 200);
}

TEST_CASE("a search counts what it did, and times it only where it is asked to") {
  auto const g = model(12, 3);
  auto o = limited(0.3);
  auto const plain = optimize(g, moves, o, cost);
  o.profile = true;
  auto const timed = optimize(g, moves, o, cost);
  CHECK(timed.best.order == plain.best.order);
  CHECK(plain.profile.timed() == 0);
  for (auto const& p : {plain.profile, timed.profile}) {
    CHECK(p.drawn > 0);
    CHECK(p.built > 0);
    CHECK(p.placed > 0);
    CHECK(p.duplicates < p.built);
    CHECK(p.drawn == timed.profile.drawn);
    CHECK(p.built == timed.profile.built);
    CHECK(p.duplicates == timed.profile.duplicates);
  }
  CHECK(plain.candidates >= plain.profile.built - plain.profile.duplicates);  // and the orders to start from
  for (double s : {timed.profile.drawing, timed.profile.applying, timed.profile.checking, timed.profile.judging,
                   timed.profile.placing})
    CHECK(s > 0);
  CHECK(timed.profile.timed() <= timed.seconds);
}

TEST_CASE("progress is told after some time even if nothing changes") {
  auto const g = model(12, 3);
  auto o = limited(0.3);
  std::size_t told = 0;
  auto const count = [&](search_progress const&) { ++told; };
  auto const found = optimize(g, moves, o, cost, count);
  CHECK(told == found.history.size());
  told = 0;
  o.progress_every = 1e-9;
  auto const again = optimize(g, moves, o, cost, count);
  CHECK(again.history.size() == found.history.size());
  CHECK(told > again.candidates / 2);
}

TEST_CASE("latencies that only the order of sums tells apart are one point of a search's front") {
  auto const thirds = [](auto const& g, op_id o) {
    return flow::is_view(g, o) ? 0.0 : 1e-3 / 3 * static_cast<double>(1 + index(g.origin(o)) % 7);
  };
  std::size_t points = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    auto const g = random_graph(seed, {.least_ops = 10, .max_ops = 30});
    auto o = limited(0.5);
    o.latency_at_most = latency_limit::of_original(1.2);
    auto const found = optimize(g, chain(reorder{} | truncate(8), rematerialize{} | truncate(8)), o, thirds);
    for (std::size_t k = 1; k < found.front.size(); ++k)
      CHECK(found.front[k].latency < found.front[k - 1].latency * (1 - 1e-12));
    points += found.front.size();
  }
  CHECK(points > 60);
}
