// Mutations as a search looks at them: by outline, by building, with pins, and what was met before.
#include <neap/optimize/candidate_evaluator.hpp>

#include <neap/mutate/chain.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/optimize/search_callables.hpp>
#include <neap/schedule/memory_greedy.hpp>
#include <neap/schedule/order.hpp>

#include "../support/judged.hpp"
#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <utility>

using namespace neap;
using namespace neap::testing;

namespace {

/// What an evaluator reads, for one program.
template <class Scheduler = as_mutated>
struct bench {
  explicit bench(toy_graph const& program)
      : pins(program),
        evaluator(neap::detail::cost_model_ref(cost), neap::detail::scheduler_ref(scheduler), options, pins) {}
  unit_cost cost;
  Scheduler scheduler;
  search_options options;
  neap::detail::pin_guard pins;
  seen_candidates seen;
  neap::detail::candidate_evaluator evaluator;
};

random_graph_options with_swaps(std::uint64_t seed) {
  random_graph_options o;
  o.swaps = seed % 3;
  return o;
}

candidate candidate_of(std::uint64_t seed) {
  auto g = random_graph(seed, with_swaps(seed));
  auto order = reverse_post_order{}(g);
  return judged(std::move(g), std::move(order));
}

constexpr auto moves = chain(rematerialize{}, neap::swap{}, reorder{});

}  // namespace

TEST_CASE("an outline says what the built candidate comes to") {
  int outlined = 0, built = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    auto const c = candidate_of(seed);
    bench<> b(c.graph);
    std::optional<replay_facts> replay;
    auto const target = c.result.peak_bytes / 2;
    auto stream = moves(c);
    while (auto m = stream.next()) {
      CAPTURE(describe(*m, c));
      auto const found = b.evaluator.evaluate(c, *m, replay, target, b.seen);
      auto e = apply_mutation(*m, c);
      CHECK((found.preview == edit_answer::impossible) <= !e);
      if (!e) continue;
      auto const whole = b.evaluator.evaluate(e->graph, e->order);
      if (found.preview == edit_answer::known) {
        ++outlined;
        CHECK(found.cost.peak_bytes == whole.peak_bytes);
        CHECK(found.cost.latency == whole.latency);
        CHECK(found.excess == doctest::Approx(excess_bytes(whole.bytes_at, target)));
      } else {
        ++built;
        REQUIRE(found.made);
        REQUIRE(found.result);
        CHECK(found.made->graph.digest() == e->graph.digest());
        CHECK(found.result->peak_bytes == whole.peak_bytes);
        CHECK(found.identity == b.evaluator.digest_of(e->graph, e->order));
      }
    }
  }
  CHECK(outlined > 100);
  CHECK(built > 20);
}

TEST_CASE("what was met before is not simulated, unless it is asked for again") {
  auto const c = candidate_of(1);
  bench<> b(c.graph);
  auto const same = [&] { return edited{c.graph, c.order}; };
  auto const first = b.evaluator.evaluate_edit(same(), b.seen);
  REQUIRE(first.identity);
  REQUIRE(first.result);
  CHECK(first.result->peak_bytes == c.result.peak_bytes);
  b.seen.add(*first.identity);
  auto const second = b.evaluator.evaluate_edit(same(), b.seen);
  CHECK(second.identity == first.identity);
  CHECK_FALSE(second.result);
  CHECK(b.evaluator.evaluate_edit(same(), b.seen, true).result);
  CHECK(b.evaluator.profile.built == 3);
}

TEST_CASE("what is no order is not judged") {
  auto const c = candidate_of(1);
  REQUIRE(c.order.size() > 1);
  bench<> b(c.graph);
  edited e{c.graph, c.order};
  e.order.order.pop_back();
  auto const found = b.evaluator.evaluate_edit(std::move(e), b.seen);
  CHECK(found.made);
  CHECK_FALSE(found.identity);
  CHECK_FALSE(found.result);
}

TEST_CASE("with a scheduler every mutation is built, and runs in the scheduler's order") {
  auto const c = candidate_of(2);
  bench<memory_greedy> b(c.graph);
  std::optional<replay_facts> replay;
  auto stream = moves(c);
  int built = 0;
  while (auto m = stream.next()) {
    auto const found = b.evaluator.evaluate(c, *m, replay, 0, b.seen);
    CHECK(found.preview == edit_answer::unknown);
    if (!found.made) continue;
    ++built;
    CHECK(found.made->order == memory_greedy{}(found.made->graph));
  }
  CHECK(built > 0);
}

TEST_CASE("an evaluator forgets a candidate in whose place another one stands") {
  auto c = candidate_of(3);
  bench<> b(c.graph);
  for (std::uint64_t seed : {3u, 4u, 6u}) {
    CAPTURE(seed);
    c = candidate_of(seed);
    b.evaluator.forget();
    std::optional<replay_facts> replay;
    auto stream = rematerialize{}(c);
    while (auto m = stream.next()) {
      auto const found = b.evaluator.evaluate(c, *m, replay, 0, b.seen);
      auto const e = apply_mutation(*m, c);
      if (found.preview != edit_answer::known || !e) continue;
      CHECK(found.cost.peak_bytes == simulate(e->graph, e->order, unit_cost{}).peak_bytes);
    }
  }
}

TEST_CASE("what breaks a pin is no candidate") {
  auto const plain = candidate_of(5);
  graph_editor edit{plain.graph};
  for (auto o : plain.graph.ops()) edit.add_pins(o, pin::run_once);
  toy_graph const program(std::move(edit).finish());
  auto const c = judged(program, plain.order);
  bench<> b(program);
  CHECK(b.evaluator.evaluate_edit({c.graph, c.order}, b.seen).made);
  graph_editor again{c.graph};
  for (auto o : c.graph.ops())
    if (graph_traits<toy_graph>::is_recomputable(plain.graph, o)) {
      (void)again.clone(o);
      break;
    }
  toy_graph broken(std::move(again).finish());
  REQUIRE(broken.op_count() > program.op_count());
  auto order = reverse_post_order{}(broken);
  CHECK_FALSE(b.evaluator.evaluate_edit({std::move(broken), std::move(order)}, b.seen).made);
}
