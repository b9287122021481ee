// Plans of rewritten graphs: the verifier accepts what computes the same, however it was rewritten, and nothing else.
#include <neap/verify/plan_verifier.hpp>

#include <neap/import/graph_file.hpp>
#include <neap/import/plan_reader.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/lift.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/rules_in_parts.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/taso_rules.hpp>
#include <neap/mutate/undo_moves.hpp>
#include <neap/report/plan_writer.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/aten_twin.hpp"
#include "../support/differences.hpp"
#include "../support/judged.hpp"
#include "../support/plain_run.hpp"
#include "../support/random_algebra.hpp"
#include "../support/random_fission.hpp"
#include "../support/sanitized.hpp"
#include "../support/wrong_parts.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace wrong {
using neap::match, neap::rule;
using neap::pattern::a, neap::pattern::b, neap::pattern::c, neap::pattern::x, neap::pattern::s;
using neap::pattern::concat, neap::pattern::made, neap::pattern::matmul, neap::pattern::mul_scalar,
    neap::pattern::permute, neap::pattern::slice, neap::pattern::unary;

constexpr auto twice = [](match const& m) { return neap::op::mul_scalar{2 * m.as<neap::op::mul_scalar>(s).value}; };
constexpr auto whole = [](match const& m) {
  return neap::op::slice{m.as<neap::op::slice>(s).axis, 0,
                         m.as<neap::op::slice>(s).stop - m.as<neap::op::slice>(s).start};
};

constexpr rule difference("difference", (a + b) >> (a - b));
constexpr rule first_twice("first twice", (a + b) >> (a + a));
constexpr rule first_only("first only", (a * b) >> a);
constexpr rule turned("turned", (a - b) >> (b - a));
constexpr rule half("half", (c * (a + b)) >> (c * a + b));
constexpr rule commuted("commuted", matmul[s](a, b) >> matmul[s](b, a));
constexpr rule doubled("doubled", mul_scalar[s](x) >> made<twice>(x));
constexpr rule turned_concat("turned concat", concat[s](a, b) >> concat[s](b, a));
constexpr rule other_piece("other piece", slice[s](x) >> made<whole>(x));
constexpr rule linear("linear", unary[s](a) >> unary[s](a + a));
constexpr rule gone("gone", unary[s](a) >> a);
constexpr rule unpermuted("unpermuted", permute(x) >> x);
}  // namespace wrong

namespace {

roofline const device = roofline::h100_like();

plan planned(candidate const& c, graph const& original) { return make_plan(c, original, memory_options{}); }
/// The plan is right, and so is what is read back from its file.
void require_right(graph const& original, candidate const& c) {
  auto const p = planned(c, original);
  auto const verdict = verify_plan(original, p, device);
  REQUIRE_MESSAGE(verdict.ok(), verdict.message());

  plan_source from{"walk"};
  from.durations = duration_source{{}, false, device};
  auto const back = io::parse_plan(plan_json(p, from), "walk");
  REQUIRE_MESSAGE(back.ok(), back.message());
  auto const again = verify_plan(original, back->planned, device);
  REQUIRE_MESSAGE(again.ok(), again.message());
}

}  // namespace

TEST_CASE("plans of graphs after walks of rules, recomputation and swaps are right, as files too") {
  // Every other graph as a file from PyTorch would tell it.
  constexpr auto moves = chain(taso_rules{}, rematerialize{}, neap::swap{}, de_rematerialize{}, de_swap{});
  std::size_t rewrites = 0, steps = 0;
  for (std::uint64_t seed = 0; seed < testing::cases(250u); ++seed) {
    CAPTURE(seed);
    auto const known = random_algebra(seed).make(8 + seed % 16);
    auto const original = seed % 2 ? aten_twin(known) : known;
    auto c = judged_in_order(original, device);
    random_stream draw(seed, 3);
    std::string path;
    for (int step = 0; step < 8; ++step) {
      std::vector<mutation_of<stream_of<std::remove_const_t<decltype(moves)>>>> all;
      auto stream = moves(c);
      while (auto m = stream.next()) all.push_back(*m);
      if (all.empty()) break;
      auto const& m = all[draw.below(static_cast<std::uint32_t>(all.size()))];
      auto e = apply_mutation(m, c);
      if (!e) continue;
      ++steps, rewrites += std::holds_alternative<rewrite>(m);
      path += "; " + describe(m, c);
      c = judged(std::move(e->graph), std::move(e->order), device);
    }
    CAPTURE(path);
    require_right(original, c);
  }
  CHECK(rewrites > testing::cases(500));
  CHECK(steps > testing::cases(800));
}

TEST_CASE("wrong rewrites are refused, before and behind right ones") {
  constexpr rewriter rules_of_it = using_rules<wrong::difference, wrong::first_twice, wrong::first_only, wrong::turned,
                                               wrong::half, wrong::commuted, wrong::doubled, wrong::turned_concat,
                                               wrong::other_piece, wrong::linear, wrong::gone, wrong::unpermuted>;
  std::size_t refused = 0, right = 0;
  host_backend backend;
  for (std::uint64_t seed = 0; seed < testing::cases(250u); ++seed) {
    CAPTURE(seed);
    auto const known = random_algebra(seed).make(6 + seed % 10);
    auto const original = seed % 2 ? aten_twin(known) : known;
    auto const c = judged_in_order(original, device);
    auto const sources = random_sources(original, seed);
    auto const run = [&](candidate const& x) {
      auto const g = by_meaning(x.graph, x.order);
      return run_plainly(g, given_order{}(g), sources, backend);
    };
    auto const expected = run(c);
    auto stream = rules_of_it(c);
    random_stream draw(seed, 4);
    while (auto m = stream.next()) {
      CAPTURE(describe(*m, c));
      auto e = m->apply(c);
      if (!e) continue;
      auto next = judged(std::move(e->graph), std::move(e->order), device);
      if (draw.below(2)) {  // hidden by a right one
        std::vector<rewrite> all;
        auto more = taso_rules{}(next);
        while (auto x = more.next()) all.push_back(*x);
        if (!all.empty())
          if (auto f = all[draw.below(static_cast<std::uint32_t>(all.size()))].apply(next))
            next = judged(std::move(f->graph), std::move(f->order), device);
      }
      auto const got = run(next);
      double const error = std::max(difference(expected.kept, got.kept), difference(expected.sources, got.sources));
      auto const verdict = verify_plan(original, planned(next, original), device);
      // a + a is a + b where b is a; and what is right to rounding is right.
      if (error > 1e-9) {
        CHECK(!verdict.ok());
        ++refused;
      } else if (verdict.ok()) {
        ++right;
      }
    }
  }
  CHECK(refused > testing::cases(500));
  CHECK(right > testing::cases(20));
}

namespace {

/// One of the mutations that a mutator yields, drawn; nothing if it yields none, or cannot be applied.
template <class M>
std::optional<candidate> after_one_of(M const& moves, candidate const& c, random_stream& draw) {
  std::vector<mutation_of<stream_of<M>>> all;
  auto stream = moves(c);
  while (auto m = stream.next()) all.push_back(*m);
  if (all.empty()) return std::nullopt;
  auto e = apply_mutation(all[draw.below(static_cast<std::uint32_t>(all.size()))], c);
  if (!e) return std::nullopt;
  return judged(std::move(e->graph), std::move(e->order), device);
}
/// The same of fissions, of which many do not go together.
std::optional<candidate> after_a_fission(candidate const& c, random_stream& draw) {
  for (int tries = 0; tries < 12; ++tries)
    if (auto const f = random_fission_of_some(c, dimension_graph(c.graph), draw))
      if (auto e = f->apply(c)) return judged(std::move(e->graph), std::move(e->order), device);
  return std::nullopt;
}
/// How many parts run of ops that rules have made.
std::size_t parts_of_rewritten(graph const& g) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.record(o).rewritten && g.record(o).part != nothing<part_id>;
  return n;
}

}  // namespace

TEST_CASE("plans of what rules have made and fission has cut are right, as files too") {
  constexpr auto others = chain(rematerialize{}, neap::swap{}, fission_factor{}, lift{}, de_rematerialize{}, de_swap{});
  constexpr auto rules = chain(taso_rules{}, in_parts(taso_rules{}));
  std::size_t parts = 0, steps = 0, nested = 0;
  host_backend backend;
  for (std::uint64_t seed = 0; seed < testing::cases(1000u); ++seed) {
    CAPTURE(seed);
    auto const known = random_algebra(seed).make(8 + seed % 16);
    auto const original = seed % 2 ? aten_twin(known) : known;
    auto c = judged_in_order(original, device);
    random_stream draw(seed, 5);
    for (int step = 0; step < 12; ++step) {
      auto const next = step < 2             ? after_one_of(taso_rules{}, c, draw)
                        : draw.below(3) != 0 ? after_a_fission(c, draw)
                        : draw.below(2) == 0 ? after_one_of(rules, c, draw)
                                             : after_one_of(others, c, draw);
      if (next) c = *next, ++steps;
    }
    parts += parts_of_rewritten(c.graph), nested += cut_again(c.graph);
    require_right(original, c);

    bool runs = seed % 2 == 0;  // plainly: what nobody has moved out
    for (auto o : c.graph.ops()) runs = runs && !c.graph.as<op::store>(o) && !c.graph.as<op::load>(o);
    if (!runs) continue;
    auto const sources = random_sources(original, seed);
    auto const expected = run_plainly(original, given_order{}(original), sources, backend);
    auto const got = run_plainly(c.graph, c.order, sources, backend);
    CHECK(difference(expected.kept, got.kept) < 1e-9);
    CHECK(difference(expected.sources, got.sources) < 1e-9);
  }
  if (testing::sanitized) return;  // a tenth of the cases may have none of something
  CHECK(parts > 150);
  CHECK(steps > 600);
  CHECK(nested > 1);
}

TEST_CASE("a wrong rewrite that runs in parts is refused, and so is a right one whose parts are wrong") {
  constexpr rewriter wrong_ones =
      using_rules<wrong::difference, wrong::first_twice, wrong::first_only, wrong::turned, wrong::half, wrong::commuted,
                  wrong::doubled, wrong::turned_concat, wrong::linear, wrong::gone>;
  std::size_t wrong_rule = 0, wrong_part = 0, right = 0;
  host_backend backend;
  for (std::uint64_t seed = 0; seed < testing::cases(600u); ++seed) {
    CAPTURE(seed);
    auto const original = random_algebra(seed).make(6 + seed % 12);
    random_stream draw(seed, 6);
    auto const sources = random_sources(original, seed);
    auto const expected = run_plainly(original, given_order{}(original), sources, backend);
    auto const is_right = [&](graph const& g, schedule const& order) {
      auto const got = run_plainly(g, order, sources, backend);
      return difference(expected.kept, got.kept) < 1e-9 && difference(expected.sources, got.sources) < 1e-9;
    };
    bool const by_rule = draw.below(2) != 0;
    auto c = after_one_of(by_rule ? wrong_ones : rewriter(taso_rules{}), judged_in_order(original, device), draw);
    if (!c) continue;
    for (int tries = 0; tries < 6 && parts_of_rewritten(c->graph) == 0; ++tries)
      if (auto next = after_a_fission(*c, draw); next && parts_of_rewritten(next->graph) > 0) c = next;
    if (parts_of_rewritten(c->graph) == 0) continue;
    if (by_rule) {
      if (is_right(c->graph, c->order)) continue;  // a + a is a + b where b is a
      CHECK_FALSE(verify_plan(original, planned(*c, original), device).ok());
      ++wrong_rule;
      continue;
    }
    edited const cut{c->graph, c->order};
    each_mistake(cut, draw, 6, [&](graph const& g, schedule const& order, std::string const& what) {
      CAPTURE(what);
      bool const ok = verify_plan(original, planned(judged(g, order, device), original), device).ok();
      if (ok) REQUIRE(is_right(g, order));
      (ok ? right : wrong_part) += 1;
    });
  }
  if (testing::sanitized) return;  // a tenth of the cases is too few to count
  CHECK(wrong_rule > 30);
  CHECK(wrong_part > 60);
  CHECK(right < wrong_part / 20);
}

TEST_CASE("an op that nobody reads changes nothing, unless it writes or draws") {
  maker m;
  auto const a = m.in({2, 3}), b = m.in({2, 3});
  m.weight({2, 3});
  m.keep(a + b);
  graph_editor more(m.done());
  auto const step = more.add_source(role::state, {dtype::i64, {}}, "step");
  auto const original = graph(std::move(more).finish());
  auto const with = [&](auto const& what, std::initializer_list<value_id> in) {
    graph_editor edit(original);
    edit.add(what, in);
    return verify_plan(original, planned(judged_in_order(graph(std::move(edit).finish()), device), original), device);
  };
  CHECK(with(op::mul{}, {original.sources()[0], original.sources()[1]}).ok());
  CHECK(with(op::accumulate{}, {original.sources()[2], original.sources()[1]}).has(violation_kind::unknown_op));
  CHECK(with(op::dropout{}, {original.sources()[0], step}).has(violation_kind::unknown_op));
}

TEST_CASE("what the original computes twice may be computed once, below the bound of what it computes") {
  maker m;
  auto const a = m.in({64, 64});
  auto const once = a + a, twice = a + a;
  m.keep(summed(once * twice, {0, 1}));
  auto const original = m.done();
  auto c = judged_in_order(original, device);
  op_id const first = original.producer(once.v), again = original.producer(twice.v);
  auto e = apply_mutation(share_results{first, again}, c);
  REQUIRE(e);
  auto const shared = judged(std::move(e->graph), std::move(e->order), device);
  auto p = planned(shared, original);
  CHECK(p.peak_bytes < planned(c, original).peak_bytes);
  CHECK(verify_plan(original, p, device).ok());
  p.lower_bound_bytes += 8;
  CHECK(!verify_plan(original, p, device).ok());
}

TEST_CASE("a copy that is written in place is not the weight that it was made of") {
  maker m;
  auto const w = m.weight({2, 3}), g = m.in({2, 3});
  m.keep(summed(m.put(op::accumulate{}, {copied(w), g}), {0}));
  auto const original = m.done();
  graph_editor edit(original);
  for (auto o : original.ops())
    if (original.as<op::accumulate>(o)) edit.set_input(o, 0, original.sources()[0]);
  for (auto o : original.ops())
    if (original.as<op::copy>(o)) edit.remove(o);
  auto const verdict =
      verify_plan(original, planned(judged_in_order(graph(std::move(edit).finish()), device), original), device);
  CHECK(!verdict.ok());
}
TEST_CASE("arguments that commute, or are computed twice in two ways, are the same") {
  maker m;
  auto const a = m.in({2, 3}), b = m.in({2, 3}), c = m.in({2, 3});
  auto const e = a + b;
  m.keep(tanh(c * e));
  m.keep(e);
  auto const original = m.done();
  graph_editor edit(original);
  auto const in = original.sources();
  auto const ca = edit.add(op::mul{}, {in[2], in[0]})[0], cb = edit.add(op::mul{}, {in[2], in[1]})[0];
  auto const sum = edit.add(op::add{}, {ca, cb})[0];
  for (auto o : original.ops())
    if (original.as<op::tanh>(o)) edit.set_input(o, 0, sum);
  for (auto o : original.ops())
    if (original.as<op::mul>(o)) edit.remove(o);
  auto const verdict =
      verify_plan(original, planned(judged_in_order(graph(std::move(edit).finish()), device), original), device);
  CHECK_MESSAGE(verdict.ok(), verdict.message());
}

TEST_CASE("what an imported op means, the original says") {
  maker m;
  auto const a = m.in({2, 3}), b = m.in({2, 3}), c = m.in({2, 3});
  m.keep(tanh((a + b) * c));
  m.keep(tanh(a - b));
  auto const original = aten_twin(m.done());
  op_id sum{}, difference{}, product{};
  for (auto o : original.ops()) {
    if (original.means<op::add>(o)) sum = o;
    if (original.means<op::sub>(o)) difference = o;
    if (original.means<op::mul>(o)) product = o;
  }
  // The product anew: of the sum, of the difference, and of the difference in a plan that calls it a sum.
  for (auto const& [factor, forged] :
       {std::pair(sum, false), std::pair(difference, false), std::pair(difference, true)}) {
    graph_editor edit(original);
    if (forged) CHECK(edit.set_meaning(factor, view_of(op::add{})));
    auto const anew = edit.add(op::mul{}, {original.sources()[2], original.output(factor)})[0];
    edit.replace_uses(original.output(product), anew);
    edit.remove(product);
    auto const changed = graph(std::move(edit).finish());
    auto const verdict = verify_plan(original, planned(judged_in_order(changed, device), original), device);
    CHECK(verdict.ok() == (factor == sum));
  }
}
TEST_CASE("walks of rules over imported graphs are shown to compute the same") {
  given_or<roofline> const cost{roofline::h100_like()};
  for (std::string const name : {"gpt-d256-l4-b8-t128", "cnn-small-b64", "mlp4-1024-b256"}) {
    CAPTURE(name);
    auto const file = io::read_graph(std::string(NEAP_SOURCE_DIR "/examples/graphs/") + name + ".json.gz");
    REQUIRE_MESSAGE(file.ok(), file.message());
    auto const& original = file->program;
    auto const judge = [&](graph g, schedule s) {
      auto r = simulate(g, s, cost);
      return candidate{std::move(g), std::move(s), std::move(r)};
    };
    auto c = judge(original, file->order);
    std::size_t steps = 0;
    for (std::uint32_t k = 0; k < 45; ++k) {
      auto stream = taso_rules{}(c);
      auto m = stream.next();
      for (std::uint32_t skip = 7 * k % 31; m && skip > 0; --skip) m = stream.next();
      if (!m) continue;
      auto e = m->apply(c);
      if (!e) continue;
      ++steps;
      c = judge(std::move(e->graph), std::move(e->order));
    }
    auto const verdict = verify_plan(original, make_plan(c, original, memory_options{}), cost);
    CHECK_MESSAGE(verdict.ok(), verdict.message());
    CHECK(steps > (name.starts_with("gpt") ? 20 : 5));
  }
}
