#include <neap/mutate/lift.hpp>

#include <neap/ir/verify.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/mutate/chain.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/reorder.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/differences.hpp"
#include "../support/opaque_twin.hpp"
#include "../support/random_algebra.hpp"
#include "../support/random_fission.hpp"
#include "../support/random_model.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

given_or<roofline> const cost{roofline::host(2)};

candidate judged(graph g, schedule s) {
  auto r = simulate(g, s, cost);
  return {std::move(g), std::move(s), std::move(r)};
}
candidate judged(edited e) { return judged(std::move(e.graph), std::move(e.order)); }

/// A sound graph, in an order that it may run in, of which the verifier says that it computes what `original` computes.
void require_right(graph const& original, candidate const& c) {
  auto const valid = verify(c.graph);
  REQUIRE_MESSAGE(valid.ok(), valid.message());
  auto const ordered = check_order(c.graph, c.order);
  REQUIRE_MESSAGE(ordered.ok(), ordered.message());
  auto const verdict =
      verify_plan(original, make_plan(c, original), stated_durations({std::nullopt, true, roofline::host(2)}));
  REQUIRE_MESSAGE(verdict.ok(), verdict.message());
}

/// All fissions made whole.
candidate all_lifted(candidate c) {
  for (;;) {
    auto stream = lift{}(c);
    auto const m = stream.next();
    if (!m) return c;
    auto e = m->apply(c);
    REQUIRE(e);
    c = judged(std::move(*e));
  }
}

}  // namespace

TEST_CASE("a fission that is made whole is what there was before") {
  std::size_t lifted = 0, nested = 0;
  for (std::uint64_t seed = 0; seed < cases(300u); ++seed) {
    auto g = random_model(seed, 14);
    if (seed % 2) g = opaque_twin(g);
    auto const before = judged(g, given_order{}(g));
    random_stream draw(seed, 21);
    auto c = before;
    for (int tries = 0, times = 0; tries < 12 && times < 3; ++tries) {
      dimension_graph const dims(c.graph);
      auto const f = random_fission_of_some(c, dims, draw);
      auto e = f ? f->apply(c) : std::nullopt;
      if (e) c = judged(std::move(*e)), ++times;
    }
    if (!c.graph.runs_in_parts()) continue;
    CAPTURE(seed);
    nested += cut_again(c.graph);
    c = all_lifted(std::move(c));
    ++lifted;
    require_right(g, c);
    CHECK_FALSE(c.graph.runs_in_parts());
    REQUIRE(c.graph.op_count() == g.op_count());
    REQUIRE(c.graph.digest() == g.digest());
  }
  CHECK(lifted > cases(150));
  CHECK(nested > cases(10));
}

namespace {

/// The fission that draws an axis and a number, of a stretch that it cuts from end to end; nothing if none is found.
std::optional<fission_of> whole_stretch(candidate const& c, random_stream& draw) {
  dimension_graph const dims(c.graph);
  auto const at = positions(c.order);
  for (int tries = 0; tries < 30; ++tries) {
    auto f = random_fission(c, draw);
    if (!f) continue;
    fission_axes const axes(c.graph, dims, dims.component(f->along.value, f->along.axis), f->parts, f->again);
    fission_region const region(c.graph, c.order, at, axes, f->first, f->last);
    if (region.inside_count() > 0) return f;
  }
  return std::nullopt;
}
std::size_t ops_in_parts(graph const& g, std::int64_t count) {
  std::size_t n = 0;
  for (auto o : g.ops())
    if (auto const p = g.record(o).part; p != nothing<part_id>) n += g.part(p).number == 0 && g.part(p).count == count;
  return n;
}

}  // namespace

TEST_CASE("another number of parts is what fission with that number gives") {
  std::size_t same = 0, other = 0, nested = 0;
  for (std::uint64_t seed = 0; seed < cases(400u); ++seed) {
    auto g = random_model(seed, 14);
    if (seed % 2) g = opaque_twin(g);
    auto before = judged(g, given_order{}(g));
    random_stream draw(seed, 22);
    if (seed % 4 > 1) {  // parts of parts
      auto e = any_fission(before, draw);
      if (!e) continue;
      before = judged(std::move(*e));
    }
    auto const f = whole_stretch(before, draw);
    auto cut = f ? f->apply(before) : std::nullopt;
    if (!cut) continue;
    auto const c = judged(std::move(*cut));
    CAPTURE(seed);
    CAPTURE(f->describe(before));
    auto stream = fission_factor{}(c);
    while (auto const m = stream.next()) {
      if (m->fission != c.graph.fission_count() - 1) continue;
      CAPTURE(m->describe(c));
      auto e = m->apply(c);
      if (!e) continue;
      auto const found = judged(std::move(*e));
      require_right(g, found);
      nested += cut_again(found.graph);
      auto again = *f;
      again.parts = m->parts;
      auto const asked = again.apply(before);
      // Where the numbers divide other axes, other ops are cut.
      if (asked && ops_in_parts(asked->graph, m->parts) == ops_in_parts(found.graph, m->parts)) {
        REQUIRE(asked->graph.digest() == found.graph.digest());
        ++same;
      } else {
        ++other;
      }
    }
  }
  CHECK(same > cases(150));
  CHECK(other < same);
  if (!sanitized) CHECK(nested > 10);  // a tenth of the cases may have none
}

TEST_CASE("fissions are lifted and cut anew among recomputation, swaps and moves in the order") {
  std::size_t lifted = 0, factored = 0, late = 0;
  constexpr auto others = zip(rematerialize{} | truncate(12), neap::swap{} | truncate(12), reorder{} | truncate(12));
  for (std::uint64_t seed = 0; seed < cases(250u); ++seed) {
    auto const known = random_model(seed, 12);
    auto const g = seed % 4 == 3 ? opaque_twin(known) : known;
    auto c = judged(g, given_order{}(g));
    random_stream draw(seed, 23);
    CAPTURE(seed);
    std::string path;
    auto const take = [&](auto const& mutation) {
      auto e = apply_mutation(mutation, c);
      if (!e) return false;
      path += "; " + describe(mutation, c);
      c = judged(std::move(*e));
      return true;
    };
    auto const draw_one = [&](auto const& moves) {
      auto stream = moves(c);
      std::vector<mutation_of<decltype(stream)>> all;
      while (auto m = stream.next()) all.push_back(*m);
      if (all.empty()) return false;
      return take(all[draw.below(static_cast<std::uint32_t>(all.size()))]);
    };
    for (int step = 0; step < 14; ++step) {
      bool const in_parts = c.graph.runs_in_parts();
      bool const touched = step > 2;
      switch (draw.below(5)) {
        case 0:
          for (int tries = 0; tries < 4; ++tries)
            if (auto const f = random_fission_of_some(c, dimension_graph(c.graph), draw); f && take(*f)) break;
          break;
        case 1: {
          bool const done = draw_one(lift{});
          lifted += done, late += done && touched;
          break;
        }
        case 2: factored += draw_one(fission_factor{}); break;
        default: (void)draw_one(others);
      }
      if (in_parts || c.graph.runs_in_parts()) {
        CAPTURE(path);
        require_right(g, c);
      }
    }
    c = all_lifted(std::move(c));
    CAPTURE(path);
    require_right(g, c);
    CHECK_FALSE(c.graph.runs_in_parts());
  }
  CHECK(lifted > cases(50));
  CHECK(late > cases(30));
  CHECK(factored > cases(30));
}

TEST_CASE("what is cut anew or lifted gives the same numbers to rounding") {
  host_backend backend;
  std::size_t anew = 0, bits = 0;
  for (std::uint64_t seed = 0; seed < cases(250u); ++seed) {
    auto const g = random_algebra(seed).make(8 + seed % 16);  // of f64
    auto const before = judged(g, given_order{}(g));
    auto const sources = random_sources(g, seed);
    auto const expected = run_plainly(g, before.order, sources, backend);
    random_stream draw(seed, 24);
    auto e = some_fissions(before, draw);
    if (!e) continue;
    auto const c = judged(std::move(*e));
    CAPTURE(seed);
    auto stream = chain(fission_factor{}, lift{})(c);
    while (auto const m = stream.next()) {
      CAPTURE(describe(*m, c));
      auto const x = apply_mutation(*m, c);
      if (!x) continue;
      auto const got = run_plainly(x->graph, x->order, sources, backend);
      CHECK(difference(expected.kept, got.kept) < 1e-12);
      CHECK(difference(expected.sources, got.sources) < 1e-12);
      ++anew, bits += !x->graph.runs_in_parts();
    }
  }
  CHECK(anew > cases(100));
  CHECK(bits > cases(30));
}
