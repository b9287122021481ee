// One basis for all solvers of a candidate: each answers as if it had made its own.
#include <neap/blocks/block_basis.hpp>

#include <neap/blocks/chain_solver.hpp>
#include <neap/blocks/graph_solver.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

TEST_CASE("a basis that is shared leads to the answers that each solver's own does") {
  auto const count = cases(40);
  std::uint64_t chains = 0;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    CAPTURE(seed);
    auto const g = seed % 2 ? opaque_graph(seed, 40) : random_model(seed, 30);
    schedule const order{topological_order(g)};
    auto const result = simulate(g, order, given_latencies{}, {.alignment = 1, .takeover = false});
    plain_vector<bool> const may(g.op_count(), true);
    auto const basis = basis_of(g, order, result);
    if (!basis.empty()) {
      seconds_t sum = 0;
      for (auto s : basis.seconds) sum += s;
      CHECK(sum == doctest::Approx(result.latency));
    }
    chain_solver_options const few{.slots = 100, .levels = {0, 0}};
    chain_solver const own(g, order, result, may, plain_blocks{}, few);
    chain_solver const shared(g, order, basis, may, plain_blocks{}, few);
    REQUIRE(own.empty() == shared.empty());
    REQUIRE(own.front().size() == shared.front().size());
    for (std::size_t k = 0; k < own.front().size(); ++k) {
      CHECK(own.front()[k].budget == shared.front()[k].budget);
      CHECK(own.front()[k].time == shared.front()[k].time);
    }
    chains += !own.empty();
    graph_solver const own_graph(g, order, result, may, plain_blocks{});
    graph_solver const shared_graph(g, order, basis, result.resident_bytes, may, plain_blocks{});
    CHECK(own_graph.problem() == shared_graph.problem());
  }
  CHECK(4 * chains > count);
}
