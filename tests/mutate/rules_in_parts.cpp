#include <neap/mutate/rules_in_parts.hpp>

#include <neap/ir/verify.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/taso_rules.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/differences.hpp"
#include "../support/random_algebra.hpp"
#include "../support/random_fission.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>

using namespace neap;
using namespace neap::testing;

namespace {

roofline const device = roofline::h100_like();

candidate judged(graph g, schedule s) {
  auto r = simulate(g, s, device);
  return {std::move(g), std::move(s), std::move(r)};
}

template <class Op>
std::size_t count(graph const& g) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.as<Op>(o) != nullptr;
  return n;
}

}  // namespace

TEST_CASE("two products of each part are one, of a sum that is made once") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f64, {16, 8}});
  auto const b = edit.add_source(role::weight, {dtype::f64, {8, 8}});
  auto const c = edit.add_source(role::weight, {dtype::f64, {8, 8}});
  auto const both =
      edit.add(op::add{}, {edit.add(op::matmul{}, {x, b}).front(), edit.add(op::matmul{}, {x, c}).front()});
  edit.keep(edit.add(op::relu{}, {both.front()}).front(), role::output);
  graph const g(std::move(edit).finish());
  auto const before = judged(g, given_order{}(g));
  auto const cut = fission_of{{before.graph.inputs(before.order[0])[0], 0}, 0, 3, 4}.apply(before);
  REQUIRE(cut);
  auto const parts = judged(cut->graph, cut->order);
  REQUIRE(count<op::matmul>(parts.graph) == 8);

  constexpr auto factor = in_parts(using_rules<rules::one_product>);
  auto stream = factor(parts);
  auto const m = stream.next();
  REQUIRE(m);
  CHECK(m->describe(parts).ends_with(" in 4 parts"));
  auto const e = m->apply(parts);
  REQUIRE(e);
  CHECK(count<op::matmul>(e->graph) == 4);
  CHECK(count<op::relu>(e->graph) == 4);
  CHECK(count<op::add>(e->graph) == 1);
  auto const found = judged(e->graph, e->order);
  auto const verdict = verify_plan(g, make_plan(found, g, memory_options{}), device);
  REQUIRE_MESSAGE(verdict.ok(), verdict.message());
  // What stands whole is no concern of it.
  CHECK_FALSE(factor(before).next());
}

TEST_CASE("rules in the parts of random programs give right plans and the same numbers to rounding") {
  constexpr auto rules = in_parts(taso_rules{});
  std::size_t drawn = 0, applied = 0, still = 0, walks = 0;
  host_backend backend;
  for (std::uint64_t seed = 0; seed < cases(250u); ++seed) {
    auto const g = random_algebra(seed).make(8 + seed % 16);  // of f64
    auto const sources = random_sources(g, seed);
    auto const expected = run_plainly(g, given_order{}(g), sources, backend);
    random_stream draw(seed, 31);
    auto c = judged(g, given_order{}(g));
    auto cut = some_fissions(c, draw);
    if (!cut) continue;
    c = judged(std::move(cut->graph), std::move(cut->order));
    CAPTURE(seed);
    std::string path;
    for (int step = 0; step < 3; ++step) {
      auto stream = rules(c);
      std::optional<edited> next;
      std::uint32_t found = 0;
      while (auto const m = stream.next()) {
        ++drawn;
        auto e = m->apply(c);
        if (!e) continue;
        ++applied, ++found;
        CAPTURE(path);
        CAPTURE(m->describe(c));
        auto const again = m->apply(c);
        REQUIRE(again);
        CHECK(again->graph.digest() == e->graph.digest());
        auto const valid = verify(e->graph);
        REQUIRE_MESSAGE(valid.ok(), valid.message());
        auto const ordered = check_order(e->graph, e->order);
        REQUIRE_MESSAGE(ordered.ok(), ordered.message());
        auto const got = run_plainly(e->graph, e->order, sources, backend);
        CHECK(difference(expected.kept, got.kept) < 1e-9);
        CHECK(difference(expected.sources, got.sources) < 1e-9);
        still += e->graph.runs_in_parts();
        auto const plan = make_plan(judged(e->graph, e->order), g, memory_options{});
        auto const verdict = verify_plan(g, plan, device);
        REQUIRE_MESSAGE(verdict.ok(), verdict.message());
        if (draw.below(found) == 0) next = std::move(e), path += "; " + m->describe(c);
      }
      if (!next) break;
      ++walks;
      c = judged(std::move(next->graph), std::move(next->order));
    }
  }
  MESSAGE(drawn, " places, ", applied, " applied, ", walks, " steps");
  CHECK(still == applied);
  CHECK(applied > cases(400));
  CHECK(applied > drawn / 3);
}
