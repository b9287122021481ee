#include <neap/mutate/recompute_segments.hpp>

#include <neap/mutate/any_mutator.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/filter.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/sample.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/check_edit.hpp"
#include "../support/deep_graph.hpp"
#include "../support/judged.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/random_graph.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

namespace {

struct some_cost {
  double operator()(op_graph const& g, op_id o) const {
    return flow::is_view(g, o) ? 0.0 : 1.0 + static_cast<double>(index(o) % 5);
  }
};

/// Applies mutations at several prices and budgets; how many there were, how many lowered the peak.
inline std::pair<int, int> try_all(candidate const& c) {
  int applied = 0, helped = 0;
  auto const expected = run_symbolically(c.graph, c.order);
  REQUIRE_MESSAGE(expected.error.empty(), expected.error);
  auto const ground = recompute_segments::ground_of(c);
  if (ground.empty()) return {0, 0};
  auto const hull = ground.hull(4);
  for (std::size_t front = 1; front < hull.size(); ++front)
    for (std::size_t tail = 0; tail < front; ++tail)
      for (int part : {60, 80, 90, 97, 99}) {
        recompute_segments const m{hull[front].price, hull[tail].price, c.result.peak_bytes * part / 100};
        CAPTURE(m.describe(c));
        auto const e = apply_mutation(m, c);
        if (!e) continue;
        ++applied;
        require_same(*e, expected);
        auto const again = apply_mutation(m, c);
        REQUIRE((again->graph == e->graph && again->order == e->order));
        std::vector<int> runs(c.graph.op_count());
        for (auto o : e->graph.ops())
          if (index(e->graph.origin(o)) < runs.size()) ++runs[index(e->graph.origin(o))];
        for (auto n : runs) REQUIRE(n <= 2);
        helped += simulate(e->graph, e->order, some_cost{}).peak_bytes < c.result.peak_bytes;
      }
  return {applied, helped};
}

/// The same over many graphs, each in an order of its own.
template <class Make>
std::pair<int, int> try_all_of(std::uint64_t seeds, Make&& make) {
  int applied = 0, helped = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    auto const [a, h] = try_all(make(seed));
    applied += a, helped += h;
  }
  return {applied, helped};
}

}  // namespace

TEST_CASE("programs computed again by segments compute what they did") {
  auto const [applied, helped] = try_all_of(cases(600u), [](std::uint64_t seed) {
    random_graph_options o;
    o.swaps = seed % 4 == 3;
    auto g = random_graph(seed, o);
    auto order = reverse_post_order{}(g);
    return judged(std::move(g), std::move(order), some_cost{});
  });
  CHECK(applied > cases(1000));
  CHECK(helped > cases(200));
}

TEST_CASE("so do imported ones, with updates in place, views and random draws") {
  auto const [applied, helped] = try_all_of(cases(200u), [](std::uint64_t seed) {
    auto g = opaque_graph(seed, 20);
    auto order = given_order{}(g);
    return judged(std::move(g), std::move(order), some_cost{});
  });
  CHECK(applied > cases(300));
  CHECK(helped > cases(100));
}

TEST_CASE("so do steps over several batches, each of which has a turn") {
  for (std::size_t const batches : {1u, 2u, 5u}) {
    auto const m = deep_graph({.layers = 12, .mixed = true, .batches = batches});
    auto const c = judged(m.program, given_order{}(m.program), some_cost{});
    CHECK(recompute_segments::ground_of(c).stretches().size() == batches);
    auto const [applied, helped] = try_all(c);
    CHECK(applied > 5);
    CHECK(helped > 5);
  }
}

TEST_CASE("so do steps of two networks, one of which is trained beside the other's results") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const type = tensor_layout::dense({dtype::f32, {256}});
  auto const op = [&](std::vector<value_id> const& in) {
    output_rule const out[] = {{type, alias_kind::fresh, -1, -1}};
    return edit.output(edit.add_opaque("op", op::opaque{}, in, out));
  };
  auto const forward = [&](value_id x) {
    std::vector<value_id> results{x};
    for (int i = 0; i < 20; ++i) results.push_back(op({results.back()}));
    return results;
  };
  auto const backward = [&](value_id gradient, std::vector<value_id> const& results) {
    for (auto i = results.size(); i-- > 1;) gradient = op({gradient, results[i]});
    return gradient;
  };
  auto const generated = forward(edit.add_source_at(role::input, type, "x"));
  auto const judged_once = forward(generated.back());
  edit.keep(backward(op({judged_once.back()}), judged_once), role::gradient);
  auto const judged_again = forward(generated.back());
  edit.keep(backward(backward(op({judged_again.back()}), judged_again), generated), role::gradient);
  graph const g(std::move(edit).finish());
  auto const c = judged(g, given_order{}(g), some_cost{});
  auto const ground = recompute_segments::ground_of(c);
  REQUIRE(ground.stretches().size() == 2);
  CHECK(ground.stretches()[0].turn() == 39);
  CHECK(ground.stretches()[1].turn() == 80);
  auto const [applied, helped] = try_all(c);
  CHECK(applied > 5);
  CHECK(helped > 5);
}

TEST_CASE("the cut is the cheapest choice of what to keep") {
  int told = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    auto g = opaque_graph(seed, 5);
    auto const c = judged(g, given_order{}(g), some_cost{});
    auto const ground = recompute_segments::ground_of(c);
    if (ground.empty()) continue;
    if (ground.stretches().size() != 1) continue;
    auto const turn = ground.stretches()[0].turn();
    auto const movable = neap::detail::movable_storages(g);
    // By storage: its op's position, readers up to the turn, whether it is read behind it.
    std::vector<storage_id> rows;
    for (auto s : g.storages())
      if (movable[index(s)] && g.record(s).updates == 0 && g.producer(g.record(s).first) != nothing<op_id> &&
          c.result.live[s].first <= turn)
        rows.push_back(s);
    if (rows.size() > 12) continue;
    auto const at = positions(c.order);
    for (double price : {1e-5, 1e-4, 1e-3, 1e-2}) {
      double least = 1e300;
      for (std::uint32_t kept = 0; kept < 1u << rows.size(); ++kept) {
        // What must be there: read behind the turn, or by an op that runs again.
        std::vector<bool> runs(g.op_count()), needed(g.storage_count());
        for (std::uint32_t p = turn + 1; p < c.order.size(); ++p)
          for (auto v : g.inputs(c.order[p])) needed[index(g.storage(v))] = true;
        double sum = 0;
        for (std::uint32_t p = turn + 1; p-- > 0;) {
          auto const o = c.order[p];
          for (std::size_t i = 0; i < rows.size(); ++i) {
            if (g.producer(g.record(rows[i]).first) != o || !needed[index(rows[i])]) continue;
            if (kept >> i & 1) sum += price * static_cast<double>(g.bytes(rows[i]));
            else runs[index(o)] = true;
          }
          if (!runs[index(o)]) continue;
          if (!flow::is_recomputable(g, o)) sum = 1e300;
          sum += some_cost{}(g, o);
          for (auto v : g.inputs(o)) needed[index(g.storage(v))] = true;
        }
        least = std::min(least, sum);
      }
      auto const cut = ground.cut(price);
      ++told;
      CHECK(cut.seconds + price * static_cast<double>(cut.bytes) == doctest::Approx(least).epsilon(1e-6));
    }
  }
  CHECK(told > 100);
}

TEST_CASE("the corners of the hull ascend in seconds and fall in bytes, and are convex") {
  auto const m = deep_graph({.layers = 60, .mixed = true});
  auto const c = judged(m.program, given_order{}(m.program), some_cost{});
  auto const hull = recompute_segments::ground_of(c).hull(32);
  REQUIRE(hull.size() > 3);
  for (std::size_t k = 1; k < hull.size(); ++k) {
    CHECK(hull[k].seconds > hull[k - 1].seconds);
    CHECK(hull[k].bytes < hull[k - 1].bytes);
    if (k < 2) continue;
    auto const slope = [&](std::size_t i) {
      return (hull[i].seconds - hull[i - 1].seconds) / static_cast<double>(hull[i - 1].bytes - hull[i].bytes);
    };
    CHECK(slope(k) >= slope(k - 1) * (1 - 1e-9));
  }
}

TEST_CASE("only pipelines that leave no recomputation out allow all of them") {
  CHECK(allowed_by(rematerialize{}).recompute);
  CHECK(!allowed_by(neap::swap{}).recompute);
  CHECK(allowed_by(rematerialize{} | truncate(3)).recompute);
  CHECK(!allowed_by(rematerialize{} | truncate(0)).recompute);
  CHECK(allowed_by(zip(neap::swap{}, rematerialize{} | truncate(3))).recompute);
  CHECK(allowed_by(chain(neap::swap{}, rematerialize{})).recompute);
  CHECK(!allowed_by(chain(neap::swap{}, neap::swap{})).recompute);
  CHECK(!allowed_by(rematerialize{} | filter([](auto const&, auto const&) { return true; })).recompute);
  CHECK(allowed_by(any_mutator(chain(neap::swap{}, rematerialize{}))).recompute);
  CHECK(!allowed_by(any_mutator(neap::swap{})).recompute);
}
