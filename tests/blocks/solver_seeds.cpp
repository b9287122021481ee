// Starting points that are handed to a search, and solvers as such.
#include <neap/blocks/solver_seeds.hpp>

#include <neap/blocks/remat_branch_and_bound.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/mutate/no_moves.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/train/training_step.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/counted_search.hpp"
#include "../support/deep_graph.hpp"
#include "../support/linked.hpp"
#include "../support/message.hpp"
#include "../support/nested_skips.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <limits>
#include <span>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

graph deep(deep_options const& o) {
  auto const m = deep_graph(o);
  graph_editor edit(m.program);
  edit.keep(m.layer_inputs.back(), role::output);  // tells forward from backward
  return graph(std::move(edit).finish());
}

simulation plain(graph const& g) {
  return simulate(g, given_order{}(g), given_latencies{}, {.alignment = 1, .takeover = false});
}

template <class Found>
void check_plan(graph const& g, Found const& found) {
  auto const verdict = verify_plan(g, found.placed, given_latencies{});
  CHECK_MESSAGE(verdict.ok(), verdict.message());
}

}  // namespace

TEST_CASE("a solver alone, judged by the search: what it takes is within the limit, with addresses") {
  for (auto const& o : {deep_options{.layers = 80}, deep_options{.layers = 60, .mixed = true},
                        deep_options{.layers = 12, .transformer = true}}) {
    auto const g = deep(o);
    auto const original = plain(g);
    for (auto const& which : {solver_choice{.rotor = true}, solver_choice{.hierarchy = true}, all_solvers}) {
      seconds_t last = 0;
      for (int part : {80, 60, 40, 25}) {
        auto options = limited(original.peak_bytes * part / 100, 1000);
        options.set(solver_seeds(which));
        auto const found = optimize(g, no_moves{}, options, given_latencies{});
        CAPTURE(part);
        CHECK_MESSAGE(found.fits, found.why_not());
        check_plan(g, found);
        CHECK(found.best.result.latency < 1.5 * original.latency);
        CHECK(found.best.result.latency >= last);
        last = found.best.result.latency;
        REQUIRE(found.steps.size() == 1);
        CHECK(
            (found.steps[0].how.starts_with("rotor for ") || found.steps[0].how.starts_with("options of blocks for ")));
      }
    }
  }
}

TEST_CASE("the least budgets of a chain need not have the least peaks: what meets a limit is found behind them") {
  zoo::gpt_config const config;
  zoo::gpt model(config);
  auto const ids = tensor::lazy({dtype::i64, {8, 512}});
  auto const step = training_step(model, std::pair{ids, ids}, cross_entropy{}, adamw{});
  search_options options;
  options.iterations = 1000;
  options.set(solver_seeds({.hierarchy = true}));
  options.memory_at_most = memory_limit::of_original(0.64);
  auto const found = optimize(step.program, no_moves{}, options);
  CHECK_MESSAGE(found.fits, found.why_not());
  CHECK(found.best.result.latency < 1.18 * found.original.latency);
  options.memory_at_most = memory_limit::of_original(0.3);  // nothing meets it
  auto const smallest = optimize(step.program, no_moves{}, options);
  CHECK(!smallest.fits);
  CHECK(smallest.best.result.peak_bytes < found.best.result.peak_bytes);
  for (auto const* p : {&found, &smallest}) {
    auto const verdict = verify_plan(step.program, p->placed, given_or{roofline::host(2)});
    CHECK_MESSAGE(verdict.ok(), verdict.message());
  }
}

TEST_CASE("a small program as one block") {
  auto const g = deep({.layers = 12, .mixed = true});
  auto const original = plain(g);
  auto options = limited(original.peak_bytes * 7 / 10, 1000);
  options.set(solver_seeds({.checkmate = true}));
  auto const found = optimize(g, no_moves{}, options, given_latencies{});
  CHECK_MESSAGE(found.fits, found.why_not());
  check_plan(g, found);
  REQUIRE(found.steps.size() == 1);
  CHECK(found.steps[0].how.starts_with("checkmate for "));
  schedule const order = given_order{}(g);
  CHECK(can_solve(g, order, {.checkmate = true}).ok());
  auto const why = can_solve(g, order, {.checkmate = true, .max_values = 10});
  CHECK(why.message().find("as one block it has ") == 0);
  CHECK(why.message().find("at most 10 are taken") != std::string::npos);
}

TEST_CASE("a small program as one block, solved by a program that is handed in") {
  auto const g = deep({.layers = 6, .mixed = true});
  auto const original = plain(g);
  std::size_t asked = 0, proved = 0;
  block_program const exact = [&](remat_problem const& p, remat_limits const& limits, double seconds) {
    CHECK(seconds > 0);
    auto a = remat_branch_and_bound{.budget = {.work = 100000}}(p, limits);
    ++asked, proved += a.status == remat_status::optimal;
    return a;
  };
  seconds_t last = 0;
  for (int part : {90, 80, 70}) {
    auto options = limited(original.peak_bytes * part / 100, 1000);
    options.set(solver_seeds({.checkmate = true}, exact));
    auto const found = optimize(g, no_moves{}, options, given_latencies{});
    CHECK_MESSAGE(found.fits, found.why_not());
    check_plan(g, found);
    REQUIRE(found.steps.size() == 1);
    CHECK(found.steps[0].how.starts_with("checkmate by program for "));
    CHECK(found.best.result.latency >= last);
    last = found.best.result.latency;
  }
  CHECK(asked > 0);
  CHECK(proved > 0);
  // Not of programs that are too large for it.
  auto options = limited(original.peak_bytes / 2, 1000);
  options.set(solver_seeds({.checkmate = true, .max_values = 5}, exact));
  auto const before = asked;
  optimize(g, no_moves{}, options, given_latencies{});
  CHECK(asked == before);
}

TEST_CASE("a program that is handed in and gives wrong answers is refused in one line") {
  auto const g = deep({.layers = 6, .mixed = true});
  auto const limit = plain(g).peak_bytes * 7 / 10;
  auto const told = [&](auto const& change) {
    block_program const lies = [&](remat_problem const& p, remat_limits const& limits, double) {
      auto a = remat_branch_and_bound{.budget = {.work = 100000}}(p, limits);
      if (has_steps(a)) change(a);
      return a;
    };
    auto options = limited(limit, 1000);
    options.set(solver_seeds({.checkmate = true}, lies));
    return message_of([&] { (void)optimize(g, no_moves{}, options, given_latencies{}); });
  };
  CHECK(told([](remat_answer&) {}) == "no error");
  auto const says = [&](auto const& change, char const* text) {
    auto const said = told(change);
    CHECK_MESSAGE(said.starts_with("options_of: the solver gave a wrong answer for a block of "), said);
    CHECK_MESSAGE(said.find(text) != std::string::npos, said);
  };
  says([](remat_answer& a) { std::erase_if(a.steps, [](auto const& s) { return s.index == 3; }); }, "step ");
  says([](remat_answer& a) { a.steps.pop_back(), a.steps.push_back(a.steps.front()); }, "another time");
  says([](remat_answer& a) { a.lower_bound = 2 * a.time; }, "less time than its lower bound");
  says([](remat_answer& a) { a.peak_bytes = 1; }, "another peak");
}

TEST_CASE("a limit of latency: the peak falls as far as it allows") {
  auto const g = deep({.layers = 80});
  auto const original = plain(g);
  bytes_t last = original.peak_bytes;
  for (double ratio : {1.05, 1.15, 1.3}) {
    search_options options;
    options.memory = {.alignment = 1, .takeover = false};
    options.iterations = 1000;
    options.set(latency_limit::of_original(ratio)).set(solver_seeds());
    auto const found = optimize(g, no_moves{}, options, given_latencies{});
    CHECK(found.fits);
    check_plan(g, found);
    CHECK(found.best.result.peak_bytes < last);
    last = found.best.result.peak_bytes;
  }
  CHECK(last < original.peak_bytes / 3);
}

TEST_CASE("with a link blocks' values leave: quicker plans under the same limit, right on a device that has it") {
  for (auto const& o : {deep_options{.layers = 60}, deep_options{.layers = 12, .transformer = true}}) {
    auto const g = deep(o);
    auto const original = plain(g);
    bytes_t all = 0;
    for (auto s : g.storages()) all += g.bytes(s);
    double const link = 2 * static_cast<double>(all) / original.latency;
    auto const device = linked(link);
    for (int part : {60, 40, 25}) {
      CAPTURE(part);
      auto options = limited(original.peak_bytes * part / 100, 1000);
      auto const plan = [&](auto const& moves, solver_choice const& which) {
        options.set(solver_seeds(which));
        auto const found = optimize(g, moves, options, device);
        CHECK_MESSAGE(found.fits, found.why_not());
        auto const verdict = verify_plan(g, found.placed, device);
        CHECK_MESSAGE(verdict.ok(), verdict.message());
        return found.best.result.latency - original.latency;
      };
      auto const stays = plan(no_moves{}, {.hierarchy = true});
      auto const leaves = plan(no_moves{}, {.hierarchy = true, .link = link});
      CHECK(leaves < 0.6 * stays);
      // A search that may swap tells the solver so.
      CHECK(plan(zip(rematerialize{} | truncate(8), swap{link} | truncate(8)), {.hierarchy = true}) <= leaves);
    }
  }
}

TEST_CASE("a program that is no chain: the solver alone drops skips, and meets limits of memory and of latency") {
  std::size_t graphs = 0;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    CAPTURE(seed);
    auto const g = nested_skips({.depth = 3, .layers = 3, .plain = true, .seed = seed});
    auto const original = plain(g);
    CHECK(can_solve(g, given_order{}(g), {.hierarchy = true}).ok());
    seconds_t last = 0;
    for (int part : {85, 70, 60}) {
      CAPTURE(part);
      auto options = limited(original.peak_bytes * part / 100, 100);
      options.set(solver_seeds({.hierarchy = true, .work = 20'000}));
      auto const found = optimize(g, no_moves{}, options, given_latencies{});
      CHECK_MESSAGE(found.fits, found.why_not());
      check_plan(g, found);
      CHECK(found.best.result.latency >= last);
      last = found.best.result.latency;
      graphs += found.steps.size() == 1 && found.steps[0].how.starts_with("graph of blocks for ");
    }
    search_options options;
    options.memory = {.alignment = 1, .takeover = false};
    options.iterations = 200;
    options.set(latency_limit::of_original(1.2)).set(solver_seeds({.hierarchy = true, .work = 20'000}));
    auto const found = optimize(g, no_moves{}, options, given_latencies{});
    CHECK(found.fits);
    check_plan(g, found);
    CHECK(found.best.result.peak_bytes < original.peak_bytes * 85 / 100);
  }
  CHECK(graphs >= 4);
}

TEST_CASE("a solver alone: a larger limit has no slower plan") {
  auto const check = [](graph const& g, solver_choice const& which, std::vector<int> const& parts) {
    auto const original = plain(g);
    seconds_t quickest = std::numeric_limits<seconds_t>::infinity();
    std::size_t fitting = 0;
    for (int part : parts) {  // from the smallest on
      CAPTURE(part);
      auto options = limited(original.peak_bytes * part / 100, 400);
      options.set(solver_seeds(which));
      auto const found = optimize(g, no_moves{}, options, given_latencies{});
      if (!found.fits) continue;
      ++fitting;
      auto const how = found.steps.empty() ? std::string("as it came") : found.steps.back().how;
      CAPTURE(how);

      CHECK(found.best.result.latency <= quickest * (1 + objective::rounding));
      quickest = std::min(quickest, found.best.result.latency);
    }
    CHECK(fitting >= parts.size() / 2);
  };
  std::vector<int> parts;
  for (int part = 34; part <= 94; part += 4) parts.push_back(part);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    check(nested_skips({.depth = 2, .layers = 2, .plain = true, .seed = seed}), {.hierarchy = true, .work = 10'000},
          parts);
  }
  for (auto const& o : {deep_options{.layers = 40, .mixed = true}, deep_options{.layers = 8, .transformer = true}}) {
    check(deep(o), {.rotor = true}, parts);
    check(deep(o), {.hierarchy = true, .work = 10'000}, parts);
  }
  check(deep({.layers = 12, .mixed = true}), {.checkmate = true, .work = 10'000}, parts);
}

TEST_CASE("a solver alone: what is reached for a smaller limit fits where it is asked for") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    auto const g = nested_skips({.depth = 4, .layers = 3, .plain = true, .seed = seed});
    auto const ask = [&](bytes_t limit) {
      auto options = limited(limit, 300);
      options.set(solver_seeds({.hierarchy = true, .work = 20'000}));
      return optimize(g, no_moves{}, options, given_latencies{});
    };
    bytes_t smallest = plain(g).peak_bytes;
    for (int part : {30, 40, 50, 55})
      smallest = std::min(smallest, ask(plain(g).peak_bytes * part / 100).best.result.peak_bytes);
    for (int above : {2, 4, 8, 12}) {
      auto const found = ask(smallest + smallest * above / 1000);
      CAPTURE(above);
      CHECK_MESSAGE(found.fits, found.why_not());
    }
  }
}

TEST_CASE("what solvers do is bounded by the candidates that the search may judge") {
  auto const g = nested_skips({.depth = 4, .layers = 4, .plain = true});
  auto const took = [&](std::size_t candidates) {
    auto options = limited(plain(g).peak_bytes * 6 / 10, candidates);
    options.set(solver_seeds({.hierarchy = true, .work = 100'000}));
    auto least = std::numeric_limits<std::clock_t>::max();  // other programs make some of them longer
    for (int round = 0; round < 5; ++round) {
      auto const begin = std::clock();
      auto const found = optimize(g, no_moves{}, options, given_latencies{});
      least = std::min(least, std::clock() - begin);
      CHECK(found.candidates <= candidates + 2);
    }
    return least;
  };
  CHECK(took(4) < took(300) / 2);
}

TEST_CASE("the search goes on from solvers' plans, and the same candidates give the same answer") {
  auto const g = deep({.layers = 100, .mixed = true});
  auto const original = plain(g);
  for (int part : {50, 20}) {
    auto options = limited(original.peak_bytes * part / 100, 600);
    auto const alone = optimize(g, rematerialize{} | truncate(8), options, given_latencies{});
    options.set(solver_seeds());
    auto const found = optimize(g, rematerialize{} | truncate(8), options, given_latencies{});
    CHECK_MESSAGE(found.fits, found.why_not());
    check_plan(g, found);
    if (alone.fits) CHECK(found.best.result.latency <= 1.01 * alone.best.result.latency);
    auto const again = optimize(g, rematerialize{} | truncate(8), options, given_latencies{});
    CHECK(again.best.graph == found.best.graph);
    CHECK(again.best.order == found.best.order);
  }
}

TEST_CASE("programs of the DSL, where there is nothing to solve, too") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    auto const g = random_model(seed, 25);
    search_options options;
    options.iterations = 60;
    auto few = all_solvers;
    few.work = 20'000;
    options.set(memory_limit::of_original(0.6)).set(solver_seeds(few));
    auto const found =
        seed % 2 ? optimize(g, rematerialize{} | truncate(8), options).placed : optimize(g, no_moves{}, options).placed;
    auto const verdict = verify_plan(g, found);
    CHECK_MESSAGE(verdict.ok(), verdict.message());
  }
}

namespace {

/// Hands in what a function does with a goal.
template <class F>
struct handed_in : search_starts {
  F run;
  explicit handed_in(F f) : run(std::move(f)) {}
  std::unique_ptr<starting_points> begin(start_from const& from) const override {
    struct points : starting_points {
      start_from from;
      F const& hand_in;
      points(start_from const& x, F const& f) : from(x), hand_in(f) {}
      void run(objective const& goal, start_judge& judge) override { hand_in(from, goal, judge); }
    };
    return std::make_unique<points>(from, run);
  }
};
template <class F>
std::shared_ptr<search_starts const> handing_in(F f) {
  return std::make_shared<handed_in<F> const>(std::move(f));
}

}  // namespace

TEST_CASE("anybody's candidates: they are judged, may be the answer, and must be orders") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const op = [&](std::vector<value_id> const& in, std::int64_t size) {
    op::opaque x;
    x.seconds = 1;
    output_rule const out[] = {{tensor_layout::dense({dtype::f32, {size}}), alias_kind::fresh, -1, -1}};
    return edit.output(edit.add_opaque("op", x, in, out));
  };
  auto const x = edit.add_source_at(role::input, tensor_layout::dense({dtype::f32, {16}}), "x");
  auto const a = op({x}, 1024), b = op({x}, 1024);
  auto const c = op({a}, 16), d = op({b}, 16);
  edit.keep(op({c, d}, 16), role::output);
  graph const g(std::move(edit).finish());
  auto const ops = [&](std::vector<value_id> const& values) {
    schedule s;
    for (auto v : values) s.order.push_back(g.producer(v));
    s.order.push_back(op_id{4});
    return s;
  };
  schedule const given = ops({a, b, c, d}), better = ops({a, c, b, d});
  std::vector<objective> asked;
  auto const in_order = [&](schedule const& order) {
    return handing_in([&asked, order](start_from const& from, objective const& goal, start_judge& judge) {
      asked.push_back(goal);
      auto const v = judge.judge(from.graph, order, "turned round");
      CHECK(v.latency > 0);
      CHECK(judge.seconds_left() > 0);
      judge.keep();
    });
  };
  search_options options = limited(4096 + 4 * 64, 100);
  options.set(in_order(better));
  // No seeds of orders but the given one: the answer can come from nowhere else.
  auto const found = optimize_from(g, no_moves{}, given_latencies{}, given, {}, options);
  CHECK(found.fits);
  CHECK(found.best.order == better);
  REQUIRE(found.steps.size() == 1);
  CHECK(found.steps[0].how == "turned round");
  REQUIRE(!asked.empty());
  CHECK(asked[0].memory == 4096 + 4 * 64);
  CHECK(asked[0].limits_memory);

  options.set(in_order(ops({c, a, b, d})));
  CHECK_THROWS_AS(optimize_from(g, no_moves{}, given_latencies{}, given, {}, options), error);
}

TEST_CASE("candidates are made of the smallest order, too, if it is smaller than the given one") {
  auto const g = deep({.layers = 20, .mixed = true});
  // Gradients of weights, which nobody else waits for, at the end: what they read is there till then.
  schedule late, rest;
  for (auto o : g.ops()) (g.role(g.output(o)) == role::gradient ? rest : late).order.push_back(o);
  late.order.insert(late.order.end(), rest.order.begin(), rest.order.end());
  auto const early = given_order{}(g);
  auto const peak = [&](schedule const& s) {
    return simulate(g, s, given_latencies{}, {.alignment = 1, .takeover = false}).peak_bytes;
  };
  REQUIRE(peak(early) < peak(late) * 99 / 100);
  auto const asked = [&](schedule const& given, std::span<schedule const> others) {
    std::vector<bytes_t> peaks;
    auto options = limited(peak(early) / 2, 1000);
    options.set(handing_in([&](start_from const& from, objective const&, start_judge& judge) {
      CHECK(from.result.peak_bytes == peak(from.order));
      peaks.push_back(from.result.peak_bytes);
      judge.pause();
    }));
    (void)optimize_from(g, no_moves{}, given_latencies{}, given, others, options);
    neap::detail::sort_once(peaks);
    return peaks;
  };
  using list = std::vector<bytes_t>;
  CHECK(asked(late, std::array{early}) == list{peak(early), peak(late)});
  CHECK(asked(early, std::array{late}) == list{peak(early)});
  CHECK(asked(late, {}) == list{peak(late)});
}

namespace {

/// Single recomputations, without the word that a search may recompute whatever it likes.
struct one_by_one {
  auto operator()(candidate const& c) const { return rematerialize{}(c); }
};

}  // namespace

TEST_CASE("while nothing fits, the search goes on from what was handed in before more is made") {
  for (std::uint64_t seed : {1, 2, 3}) {
    CAPTURE(seed);
    auto const g = nested_maker({.layers = 4, .plain = true, .seed = seed}).make();
    bool fits = false;
    std::vector<bool> told;
    auto options = limited(plain(g).peak_bytes * 6 / 10, 20'000);
    options.set([&](search_progress const& p) { fits = p.fits; });
    // The program recomputed until its peak is a tenth above the limit at most.
    options.set(handing_in([&](start_from const& from, objective const& goal, start_judge& judge) {
      if (!told.empty()) return;
      candidate c{graph(op_graph(from.graph)), from.order, from.result};
      while (c.result.peak_bytes > goal.memory + goal.memory / 10) {
        auto moves = rematerialize{}(c);
        auto const m = moves.next();
        REQUIRE(m);
        auto e = apply_mutation(*m, c);
        REQUIRE(e);
        auto result = simulate(e->graph, e->order, given_latencies{}, {.alignment = 1, .takeover = false});
        c = {std::move(e->graph), std::move(e->order), std::move(result)};
      }
      REQUIRE(c.result.peak_bytes > goal.memory);
      judge.judge(c.graph, c.order, "nearly");
      judge.keep();
      told.push_back(fits);
      judge.pause();
      told.push_back(fits);
    }));
    auto const found = optimize_from(g, one_by_one{}, given_latencies{}, given_order{}(g), {}, options);
    REQUIRE(told.size() == 2);
    CHECK(!told[0]);
    CHECK(told[1]);
    CHECK_MESSAGE(found.fits, found.why_not());
    check_plan(g, found);
  }
}

TEST_CASE("of a program that is too large for checkmate nothing is handed in") {
  auto const g = deep({.layers = 12, .mixed = true});
  auto options = limited(plain(g).peak_bytes * 7 / 10, 1000);
  auto const alone = optimize(g, no_moves{}, options, given_latencies{});
  options.set(solver_seeds({.checkmate = true, .max_values = 5}));
  CHECK(optimize(g, no_moves{}, options, given_latencies{}).candidates == alone.candidates);
}
