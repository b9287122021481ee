// What a node of a graph file is called and has besides may be megabytes long; candidates of a search cost the same.
#include <neap/mutate/chain.hpp>
#include <neap/mutate/lift.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>

#include <neap/schedule/order.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/opaque_twin.hpp"
#include "../support/random_fission.hpp"
#include "../support/random_model.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

using namespace neap;

namespace {

/// Each opaque op with so long a text in the place of its details and its name.
graph with_texts(graph const& g, std::size_t length) {
  graph_editor edit(g);
  std::size_t n = 0;
  for (auto o : g.ops()) {
    if (!g.as<op::opaque>(o) || n == 3) continue;
    edit.set_details(o, std::string(length, static_cast<char>('a' + n)));
    edit.set_name(o, std::string(length, static_cast<char>('p' + n++)));
  }
  return graph(std::move(edit).finish());
}
/// Processor seconds for moves of all kinds, one after another, each on a copy.
double seconds_of_moves(graph const& g) {
  given_or<roofline> const cost{roofline::h100_like()};
  auto const order = given_order{}(g);
  candidate const c{g, order, simulate(g, order, cost)};
  constexpr auto moves = chain(rematerialize{}, neap::swap{}, lift{});
  auto const begin = std::clock();
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    random_stream draw(seed, 2);
    auto e = testing::any_fission(c, draw);
    if (!e) continue;
    auto r = simulate(e->graph, e->order, cost);
    candidate const parts{std::move(e->graph), std::move(e->order), std::move(r)};
    auto stream = moves(parts);
    for (int k = 0; k < 40; ++k) {
      auto m = stream.next();
      if (!m) break;
      if (auto f = apply_mutation(*m, parts)) CHECK(simulate(f->graph, f->order, cost).latency > 0);
    }
  }
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("a candidate costs the same however long the texts of its ops are") {
  auto const g = testing::opaque_twin(testing::random_model(4, 16));
  auto const brief = with_texts(g, 8), long_one = with_texts(g, testing::sanitized ? 20'000 : 2'000'000);
  double least = 1e9, least_long = 1e9;
  for (int k = 0; k < 3; ++k) {
    least = std::min(least, seconds_of_moves(brief));
    least_long = std::min(least_long, seconds_of_moves(long_one));
  }
  CHECK(least > 0);
  CHECK(least_long < 2 * least + 0.01);
}

TEST_CASE("a part has its op's texts, and digests are those of the texts") {
  auto const g = testing::opaque_twin(testing::random_model(4, 16));
  auto const a = with_texts(g, 5000), b = with_texts(g, 5000), c = with_texts(g, 5001);
  CHECK(a.digest() == b.digest());
  CHECK(a.digest() != c.digest());
  CHECK(a.digest() != g.digest());
  given_or<roofline> const cost{roofline::h100_like()};
  auto const order = given_order{}(a);
  candidate const whole{a, order, simulate(a, order, cost)};
  random_stream draw(1, 2);
  auto const e = testing::any_fission(whole, draw);
  REQUIRE(e);
  for (auto o : e->graph.ops())
    for (auto x : a.ops())
      if (e->graph.origin(o) == a.origin(x) && e->graph.as<op::opaque>(o)) {
        CHECK(e->graph.details(o) == a.details(x));
        CHECK(e->graph.target(o) == a.target(x));
        CHECK(e->graph.name(o) == a.name(x));
      }
}
