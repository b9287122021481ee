// The stages of a search that go on from candidates: dives, neighbourhoods, sub-searches, placement, polish.
#include <neap/optimize/search_stages.hpp>

#include "../support/drawn_edit.hpp"
#include "../support/judged.hpp"
#include "../support/search_stage.hpp"

#include <neap/core/philox.hpp>
#include <neap/core/work_meter.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/optimize/stages/polish.hpp>
#include <neap/optimize/stages/tighter_limits.hpp>
#include <neap/schedule/refine.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using testing::search_stage;

TEST_CASE("a dive goes to the target; what it did not follow waits, no more than there is room for") {
  search_stage s("random_model1", 0.8);
  auto& state = s.state();
  s.run().diving.dive(s.orders.front());
  CHECK(s.judged() > 1);
  CHECK(s.orders.front()->expanded);
  CHECK(s.run().diving.roots().size() == 1);
  CHECK(state.queue.size() <= 2 * state.max_waiting() + 1);
  CHECK(s.best_is_right());
  s.run().diving.search(0.05);
  CHECK(state.is_met());
  CHECK(s.best_is_right());
}

TEST_CASE("without the switch no dive judges a candidate, and searches by dives end") {
  search_policy off;
  off.dives.on = false;
  for (double const memory : {0.5, 0.0}) {
    search_stage s("random_model1", memory, memory > 0 ? 0 : 1.2, off);
    s.run().diving.search(1);
    s.run().diving.search_from_seeds(1);
    s.run().diving.search_from_external();
    s.run().diving.descend(s.orders.front(), 1);
    CHECK(s.judged() == 1);
  }
}

TEST_CASE("a dive ends where its part of the budget does, and waits to be continued") {
  search_stage s("chain200", 0.1);
  auto const part = s.state().budget.used() + 1e-4;
  s.run().diving.dive(s.orders.front(), part);
  CHECK(s.state().budget.used() >= part);
  CHECK(s.state().budget.used() < part + 0.01);
  CHECK_FALSE(s.state().queue.empty());
}

TEST_CASE("large-neighbourhood search never loses the best, and leaves an empty queue") {
  search_policy few;
  few.neighbourhoods.max_failures = 10;
  search_stage s("random_model1", 0.6, 0, few);
  s.run().diving.dive(s.orders.front());
  s.run().diving.search(0.005);
  auto const before = s.state().best;
  auto const judged = s.judged();
  detail::search_neighbourhoods(s.state(), s.run().diving, 17);
  CHECK(s.judged() > judged);
  CHECK_FALSE(s.state().beats(before->state.result, s.state().best->state.result));
  CHECK(s.state().queue.empty());
  CHECK(s.best_is_right());
}

TEST_CASE("a sub-search has a scope of its own") {
  search_stage s("random_model1", 0.6);
  auto& state = s.state();
  auto const queue = state.queue;
  auto const best = state.best;
  auto const target = state.target;
  auto const inner = state.sub_search([&] {
    state.active_limits.memory = 1;
    state.is_exploratory = true;
    state.seek({});
    state.lower_target(100);
    state.best = nullptr;
    state.queue.clear();
  });
  CHECK(state.queue == queue);
  CHECK(state.best == best);
  CHECK(state.target == target);
  CHECK_FALSE(state.is_exploratory);
  CHECK(state.active_limits.memory == state.limits.memory);
  CHECK(inner.active_limits.memory == 1);
  CHECK(inner.queue.empty());
  state.queue.front()->expanded = true;
  state.restart_from(queue);
  CHECK_FALSE(state.queue.front()->expanded);
  CHECK(state.goal.memory == state.limits.memory);
}

TEST_CASE("searches for the smallest peak: unmet limits have one answer, met ones go on from what waited") {
  bytes_t smallest[2];
  for (int k = 0; k < 2; ++k) {
    search_stage s("nested3", k == 0 ? 0.02 : 0.01);
    detail::search_until_met(s.run());
    CHECK_FALSE(s.state().is_met());
    CHECK_FALSE(s.state().goal.limits_memory);
    CHECK_FALSE(s.state().records_near_smallest);
    CHECK(s.best_is_right());
    smallest[k] = s.state().best->state.result.peak_bytes;
  }
  CHECK(smallest[0] == smallest[1]);

  search_stage met("nested3", 0.6);
  auto const orders = met.orders;
  detail::search_until_met(met.run());
  CHECK(met.state().is_met());
  CHECK(met.state().goal.limits_memory);
  for (auto const& n : orders) CHECK(std::count(met.state().queue.begin(), met.state().queue.end(), n) == 1);
}

TEST_CASE("a moment's search stops at the first candidate that fits, and what it found does not wait") {
  search_stage s("chain200", 0.5);
  auto const queue = s.state().queue;
  detail::search_first_fit(s.run());
  CHECK(s.judged() > 1);
  CHECK(s.state().queue == queue);
  CHECK(s.state().budget.used() < 0.2);
  auto const judged = s.judged();
  if (s.state().is_met()) {
    detail::search_first_fit(s.run());
    CHECK(s.judged() == judged);
  }
}

TEST_CASE("a dear plan is no dearer after a search for cheaper ones") {
  search_stage s("gpt-d256-l4-b8-t128", 0.6);
  detail::run_stages(s.run(), detail::phase::seeds);
  REQUIRE(s.state().is_met());
  auto const before = s.state().best;
  detail::reduce_price(s.run());
  CHECK(s.state().is_met());
  CHECK(s.state().best->state.result.latency <= before->state.result.latency);
  CHECK_FALSE(s.state().is_exploratory);
  CHECK(s.state().active_limits.latency == s.state().limits.latency);
}

TEST_CASE("placement: the answer fits or is the smallest, and polish keeps that") {
  search_stage s("transformer24", 0.7);
  auto& placing = s.run().placing;
  CHECK(placing.answer() == nullptr);
  CHECK(placing.place());
  CHECK(placing.answer() == s.orders.front());
  CHECK_FALSE(placing.answer_fits());
  detail::run_stages(s.run(), detail::phase::seeds);
  detail::run_stages(s.run(), detail::phase::exploration);
  placing.place();
  placing.place_alternatives();
  auto const fits = placing.answer_fits();
  CHECK(s.state().out.fits == fits);
  CHECK(s.state().best == placing.answer());
  CHECK(s.state().out.placed.arena_bytes >= placing.answer()->state.result.peak_bytes);
  auto const latency = s.state().best->state.result.latency;
  auto const arena = s.state().out.placed.arena_bytes;
  detail::polish polishing(s.state(), placing);
  polishing.look_at_answers();
  CHECK(s.state().best->state.result.latency == latency);
  CHECK(s.state().out.placed.arena_bytes == arena);
  polishing.finish();
  CHECK(s.state().best->state.result.latency <= latency);
  CHECK(s.state().out.placed.arena_bytes <= std::max(arena, s.state().out.memory_limit_bytes));
  CHECK(s.state().out.fits == fits);
}

TEST_CASE("sweeps of an epoch before are taken over where latency alone is limited") {
  for (bool const of_memory : {false, true}) {
    search_stage s("transformer24", of_memory ? 0.5 : 0, of_memory ? 0 : 1.1);
    auto& run = s.run();
    std::uint64_t work[2];
    for (auto& w : work) {
      run.begin_epoch(s.state().limits, 1);
      auto const begin = work_meter::now();
      run.parts.prepare(run.bases, run.recomputed);
      w = work_meter::now() - begin;
      CHECK(run.parts.is_prepared());
      CHECK(run.parts.bases().size() >= run.bases.size());
    }
    CHECK((work[1] < work[0]) == !of_memory);
    run.parts.add_seeds(run.starts, run.recomputed);
    CHECK(s.best_is_right());
  }
}

TEST_CASE("tighter limits are below the limit, above the bound, of one ladder, and nothing where nothing is to gain") {
  search_stage a("chain200", 0.5), b("chain200", 0.49);
  auto answer = a.state().out.original;
  answer.peak_bytes = a.state().limits.memory - 100;
  answer.latency *= 1.5;
  std::vector<bytes_t> of_a, of_b;
  for (std::uint32_t epoch = 0; epoch < 4; ++epoch) {
    auto const t = detail::tighter_limits(a.state(), answer, true, epoch);
    REQUIRE(t);
    CHECK(t->memory < a.state().limits.memory);
    CHECK(t->memory >= a.state().out.lower_bound_bytes);
    CHECK(t->latency < answer.latency);
    auto const any = detail::tighter_limits(a.state(), answer, false, epoch);
    CHECK(any->memory == t->memory);
    CHECK(any->latency == a.state().limits.latency);
    of_a.push_back(t->memory);
    answer.peak_bytes = std::min(answer.peak_bytes, b.state().limits.memory);
    of_b.push_back(detail::tighter_limits(b.state(), answer, true, epoch)->memory);
  }
  CHECK(std::any_of(of_b.begin(), of_b.end(), [&](bytes_t m) { return std::count(of_a.begin(), of_a.end(), m) > 0; }));
  answer.latency = a.state().out.original.latency;
  CHECK_FALSE(detail::tighter_limits(a.state(), answer, true, 0));
  answer.peak_bytes = a.state().limits.memory + 1;
  CHECK_FALSE(detail::tighter_limits(a.state(), answer, false, 0));
}

TEST_CASE("what a limit leaves room for is not recomputed, and no more is built than is allowed") {
  for (auto const* name : {"chain200", "transformer24", "random_model1"}) {
    search_stage s(name, 0.5);
    auto& state = s.state();
    detail::run_stages(s.run(), detail::phase::seeds);
    auto const limit = state.limits.memory * 3 / 2;
    auto const& before = state.best->state;
    REQUIRE(detail::find_shared{}(before).size() > 0);
    auto c = before;
    detail::undoing_budget left{state, before.order.size() - 1};
    CHECK_FALSE(detail::undo_recomputations(c, limit, left));
    left.ops = 1'000'000;
    CHECK(detail::undo_recomputations(c, limit, left));
    CHECK(left.ops < 1'000'000);
    CHECK(c.result.latency < before.result.latency);
    CHECK(c.result.peak_bytes <= limit);
    auto const again = simulate(c.graph, c.order, s.cost());
    CHECK(again.peak_bytes == c.result.peak_bytes);
    CHECK(again.latency == c.result.latency);
    CHECK(verify_plan(s.run().state.graph, make_plan(c, s.run().state.graph), s.cost()));
    auto const tight = c.result;
    CHECK_FALSE(detail::undo_recomputations(c, limit, left));
    for (auto const& [score, what] : detail::find_shared{}(c)) {
      auto const e = state.evaluator().apply(c, what);
      if (!e || c.graph.origin(what.first) != c.graph.origin(what.again) ||
          !detail::has_room(c, flow_facts(c.graph, s.cost()), detail::range_maximum(c.result.bytes_at), what, limit))
        continue;
      auto const r = simulate(e->graph, e->order, s.cost());
      CHECK((r.peak_bytes > limit || r.latency >= tight.latency));
    }
  }
}

TEST_CASE("exchanged recomputations are quicker within the limit, and the program's") {
  int changed = 0;
  for (auto const* name : {"skips150", "mixed120", "random_model1"})
    for (double const part : {0.25, 0.4}) {
      search_stage s(name, part);
      auto& state = s.state();
      detail::run_stages(s.run(), detail::phase::seeds);
      auto c = state.best->state;
      auto const limit = std::max(state.limits.memory, c.result.peak_bytes);
      detail::undoing_budget left{state, 10'000'000};
      detail::undo_recomputations(c, limit, left);
      auto const before = c.result;
      bool const is_changed = detail::exchange_recomputations(c, limit, left, 200);
      changed += is_changed;
      CHECK((c.result.latency < before.latency) == is_changed);
      CHECK(c.result.peak_bytes <= limit);
      CHECK(verify_plan(state.graph, make_plan(c, state.graph), s.cost()));
      CHECK(simulate(c.graph, c.order, s.cost()).latency == c.result.latency);
      left.ops = 0;
      CHECK_FALSE(detail::exchange_recomputations(c, limit, left, 200));
    }
  CHECK(changed > 1);
}

TEST_CASE("rules without a pipeline of rules change nothing") {
  search_stage s("nested3", 0.5);
  detail::run_stages(s.run(), detail::phase::begin);
  CHECK(s.run().bases == s.orders);
  CHECK(s.judged() == 1);
  CHECK(s.state().out.stages.empty());
}

TEST_CASE("polish: without time, the quickest that comes of what was surpassed and has addresses within the limit") {
  int without_addresses = 0;  // the quickest of all
  for (std::string const name : {"random_model1", "cnn-small-b64"})
    for (double const memory : {0.6, 0.9})
      for (bool const answered : {true, false}) {
        CAPTURE(name);
        CAPTURE(memory);
        CAPTURE(answered);
        search_stage s(name, memory);
        auto& state = s.state();
        detail::polish polishing(state, s.run().placing);
        random_stream draw(7, 3);
        seconds_t least = 1, least_placed = 1;
        for (int walk = 0; walk < 10; ++walk) {
          auto n = s.orders.front();
          for (int step = 0; step < 60; ++step) {
            auto e = testing::drawn_edit(neap::swap{draw.below(2) ? 16e9 : 64e9}, n->state, draw, 20);
            if (!e) continue;
            auto made = testing::judged(std::move(e->graph), std::move(e->order), s.cost());
            n = state.make_node(nullptr, "", std::move(made.graph), std::move(made.order), std::move(made.result));
            auto const& now = n->state;
            if (!state.limits.fits(now.result)) continue;
            if (answered) state.best = n;
            state.on_incumbent_replaced(n);
            auto const c = testing::judged(now.graph, refine{}(flow_facts(now.graph, s.cost()), now.order), s.cost());
            if (c.result.peak_bytes > now.result.peak_bytes || c.result.latency >= now.result.latency) continue;
            least = std::min(least, c.result.latency);
            if (make_plan(c, state.graph).arena_bytes <= state.out.memory_limit_bytes)
              least_placed = std::min(least_placed, c.result.latency);
          }
        }
        REQUIRE(least_placed < 1);
        without_addresses += least < least_placed;
        state.budget.keep_back(1e9);  // more than there is
        s.run().placing.place();
        CHECK(state.out.fits == answered);
        polishing.finish();
        CHECK(state.out.fits);
        CHECK(state.best->state.result.latency <= least_placed);
        CHECK(s.best_is_right());
      }
  CHECK(without_addresses > 0);
}

TEST_CASE("an epoch runs the stages of the list in its order, each with a record of its own work and candidates") {
  auto const place_of = [](std::string const& name) {
    auto const& all = detail::epoch_stages;
    return std::find_if(all.begin(), all.end(), [&](auto const& s) { return name == s.name; }) - all.begin();
  };
  for (double const memory : {0.02, 0.6}) {
    CAPTURE(memory);
    search_stage s("nested3", memory);
    auto const before = s.judged();
    auto const began = work_meter::now();
    detail::run_epoch(s.run(), s.state().limits, 0.3);
    auto const spent = 1e-9 * static_cast<double>(work_meter::now() - began);
    auto const& records = s.state().out.stages;
    std::size_t candidates = 0, inside = 0;
    double work = 0;
    std::ptrdiff_t last = -1;
    for (auto const& r : records) {
      CAPTURE(r.stage);
      candidates += r.candidates, work += r.work;
      CHECK(r.epoch == 2);  // the first has begun with the program
      CHECK(r.work >= 0);
      CHECK(r.seconds >= 0);
      inside += r.within == "smallest_peak";
      if (!r.within.empty()) continue;
      CHECK(place_of(r.stage) < static_cast<std::ptrdiff_t>(detail::epoch_stages.size()));
      CHECK(place_of(r.stage) > last);
      last = place_of(r.stage);
    }
    CHECK(candidates == s.judged() - before);
    CHECK(work <= spent * (1 + 1e-9) + 1e-9);
    CHECK(work > 0.5 * spent);
    CHECK((inside > 0) == (memory < 0.1));
    CHECK(s.state().stage == nullptr);
    for (auto const* p = s.state().best->path.get(); p; p = p->before.get()) CHECK_FALSE(p->last.stage.empty());
    REQUIRE(s.state().best->path);
    CHECK(s.state().best->path->last.cost == plan_cost(s.state().best->state.result));
  }
}
