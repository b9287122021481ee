#include <neap/mutate/fission.hpp>

#include <neap/ir/verify.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/opaque_twin.hpp"
#include "../support/plain_run.hpp"
#include "../support/random_fission.hpp"
#include "../support/random_model.hpp"
#include "../support/sanitized.hpp"
#include "../support/wrong_parts.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

candidate judged(graph g, schedule s) {
  auto r = simulate(g, s, roofline::host(2));
  return {std::move(g), std::move(s), std::move(r)};
}

/// The largest difference of elements, beside the largest element.
double difference(block const& a, block const& b, dtype t) {
  double most = 0, large = 1e-30;
  auto const n = static_cast<std::size_t>(a.bytes() / size_of(t));
  for (std::size_t i = 0; i < n; ++i) {
    double x = 0, y = 0;
    if (t == dtype::f32)
      x = static_cast<double>(reinterpret_cast<float const*>(a.data())[i]),
      y = static_cast<double>(reinterpret_cast<float const*>(b.data())[i]);
    else if (t == dtype::f64)
      x = reinterpret_cast<double const*>(a.data())[i], y = reinterpret_cast<double const*>(b.data())[i];
    else if (t == dtype::i64)
      x = static_cast<double>(reinterpret_cast<std::int64_t const*>(a.data())[i]),
      y = static_cast<double>(reinterpret_cast<std::int64_t const*>(b.data())[i]);
    if (std::isnan(x) != std::isnan(y)) return 1e9;
    if (std::isnan(x)) continue;
    most = std::max(most, std::abs(x - y));
    large = std::max(large, std::abs(x));
  }
  return most / large;
}

}  // namespace

namespace {

void set_step(graph const& g, std::vector<block> const& sources) {  // the first one has number 1
  for (std::size_t k = 0; k < sources.size(); ++k)
    if (g.type(g.sources()[k]) == tensor_type{dtype::i64, {}}) *reinterpret_cast<std::int64_t*>(sources[k].data()) = 3;
}

bool same_result(graph const& g, plain_result const& a, plain_result const& b, double tolerance) {
  if (a.kept.size() != b.kept.size()) return false;
  for (std::size_t k = 0; k < a.kept.size(); ++k)
    if (!(difference(a.kept[k], b.kept[k], g.type(g.kept()[k]).element) < tolerance)) return false;
  for (std::size_t k = 0; k < a.sources.size(); ++k)
    if (!(difference(a.sources[k], b.sources[k], g.type(g.sources()[k]).element) < tolerance)) return false;
  return true;
}

/// Addresses are not what these tests are about.
default_planner const quick{.max_placements = 1000};

}  // namespace

TEST_CASE("random stretches of random training steps run in parts and give the same") {
  host_backend backend;
  std::size_t built = 0, refused = 0, inside = 0, partial = 0;
  for (std::uint64_t seed = 0; seed < cases(300u); ++seed) {
    auto const g = random_model(seed, 14);
    auto const c = judged(g, given_order{}(g));
    auto const sources = random_sources(g, seed);
    set_step(g, sources);
    auto const expected = run_plainly(g, c.order, sources, backend);
    dimension_graph const dims(g);
    random_stream draw(seed, 9);
    for (int tries = 0; tries < 6; ++tries) {
      auto const drawn = random_fission(c, draw);
      if (!drawn) continue;
      auto const& f = *drawn;
      CAPTURE(seed);
      CAPTURE(f.describe(c));
      auto e = f.apply(c);
      if (!e) {
        ++refused;
        continue;
      }
      ++built;
      auto const valid = verify(e->graph);
      REQUIRE_MESSAGE(valid.ok(), valid.message());
      auto const ordered = check_order(e->graph, e->order);
      REQUIRE_MESSAGE(ordered.ok(), ordered.message());
      for (auto o : e->graph.ops()) {
        inside += e->graph.record(o).part != nothing<part_id>;
        partial += e->graph.as<op::combine_into>(o) != nullptr;
      }
      auto const p = make_plan(judged(e->graph, e->order), g);
      auto const verdict = verify_plan(g, p);
      REQUIRE_MESSAGE(verdict.ok(), verdict.message());
      auto const got = run_plainly(e->graph, e->order, sources, backend);
      REQUIRE(same_result(g, expected, got, 2e-4));
    }
  }
  CHECK(inside > cases(4000));
  CHECK(refused > cases(100));
  CHECK(built > cases(400));
  CHECK(partial > cases(300));
}

TEST_CASE("stretches of what runs in parts already run in parts, and what is cut need not be cut everywhere") {
  host_backend backend;
  std::size_t more = 0, odd = 0, again = 0;
  for (std::uint64_t seed = 0; seed < cases(200u); ++seed) {
    auto const g = random_model(seed, 14);
    auto c = judged(g, given_order{}(g));
    auto const sources = random_sources(g, seed);
    set_step(g, sources);
    auto const expected = run_plainly(g, c.order, sources, backend);
    random_stream draw(seed, 13);
    int times = 0;
    for (int tries = 0; tries < 12 && times < 3; ++tries) {
      dimension_graph const dims(c.graph);
      auto const f = random_fission_of_some(c, dims, draw);
      auto e = f ? f->apply(c) : std::nullopt;
      if (!e) continue;
      CAPTURE(seed);
      CAPTURE(f->describe(c));
      odd += dims.extent(dims.component(f->along.value, f->along.axis)) % f->parts != 0;
      auto const valid = verify(e->graph);
      REQUIRE_MESSAGE(valid.ok(), valid.message());
      auto const ordered = check_order(e->graph, e->order);
      REQUIRE_MESSAGE(ordered.ok(), ordered.message());
      c = judged(e->graph, e->order);
      auto const verdict = verify_plan(g, make_plan(c, g));
      REQUIRE_MESSAGE(verdict.ok(), verdict.message());
      REQUIRE(same_result(g, expected, run_plainly(c.graph, c.order, sources, backend), 2e-4));
      more += times++ > 0;
      again += cut_again(c.graph);
    }
  }
  CHECK(more > cases(50));
  CHECK(odd > cases(9));
  CHECK(again > cases(10));
}

TEST_CASE("the same of ops whose meaning is not known") {
  std::size_t more = 0, again = 0;
  given_or<roofline> const cost{roofline::host(2)};
  stated_durations const stated({std::nullopt, true, roofline::host(2)});
  for (std::uint64_t seed = 0; seed < cases(150u); ++seed) {
    auto const g = opaque_twin(random_model(seed, 14));
    auto c = judged(g, given_order{}(g));
    random_stream draw(seed, 14);
    int times = 0;
    for (int tries = 0; tries < 12 && times < 3; ++tries) {
      auto const f = random_fission_of_some(c, dimension_graph(c.graph), draw);
      auto e = f ? f->apply(c) : std::nullopt;
      if (!e) continue;
      CAPTURE(seed);
      CAPTURE(f->describe(c));
      auto const result = simulate(e->graph, e->order, cost);
      c = {std::move(e->graph), std::move(e->order), result};
      auto const verdict = verify_plan(g, make_plan(c, g), stated);
      REQUIRE_MESSAGE(verdict.ok(), verdict.message());
      more += times++ > 0;
      again += cut_again(c.graph);
    }
  }
  CHECK(more > cases(40));
  CHECK(again > cases(10));
}

TEST_CASE("parts of parts of random training steps give the same") {
  host_backend backend;
  given_or<roofline> const cost{roofline::host(2)};
  stated_durations const stated({std::nullopt, true, roofline::host(2)});
  std::size_t built = 0, inner = 0, joined = 0;
  for (std::uint64_t seed = 0; seed < cases(250u); ++seed) {
    auto const g = random_model(seed, 14);
    auto const c = judged(g, given_order{}(g));
    auto const sources = random_sources(g, seed);
    set_step(g, sources);
    auto const expected = run_plainly(g, c.order, sources, backend);
    random_stream draw(seed, 15);
    for (int tries = 0; tries < 4; ++tries) {
      auto const e = parts_of_parts(c, draw);
      if (!e) continue;
      ++built;
      CAPTURE(seed);
      CAPTURE(tries);
      auto const valid = verify(e->graph);
      REQUIRE_MESSAGE(valid.ok(), valid.message());
      for (auto o : e->graph.ops()) {
        auto const p = e->graph.record(o).part;
        inner += p != nothing<part_id> && e->graph.part(p).of != nothing<part_id>;
        joined += e->graph.as<op::combine_into>(o) || e->graph.as<op::place>(o);
      }
      auto const verdict = verify_plan(g, make_plan(judged(e->graph, e->order), g));
      REQUIRE_MESSAGE(verdict.ok(), verdict.message());
      REQUIRE(same_result(g, expected, run_plainly(e->graph, e->order, sources, backend), 2e-4));
    }
    auto const twin = opaque_twin(g);
    auto const e = parts_of_parts(judged(twin, given_order{}(twin)), draw);
    if (!e) continue;
    CAPTURE(seed);
    auto const result = simulate(e->graph, e->order, cost);
    auto const verdict = verify_plan(twin, make_plan(candidate{e->graph, e->order, result}, twin), stated);
    REQUIRE_MESSAGE(verdict.ok(), verdict.message());
  }
  CHECK(built > cases(150));
  CHECK(inner > cases(1500));
  CHECK(joined > cases(500));
}

TEST_CASE("ops whose meaning is not known run in parts where their file says how they may be cut") {
  std::size_t built = 0, parts = 0;
  for (std::uint64_t seed = 0; seed < cases(150u); ++seed) {
    auto const g = opaque_twin(random_model(seed, 14));
    auto const c = judged(g, given_order{}(g));
    random_stream draw(seed, 10);
    for (int tries = 0; tries < 8; ++tries) {
      auto const f = random_fission(c, draw);
      if (!f) continue;
      CAPTURE(seed);
      CAPTURE(f->describe(c));
      auto e = f->apply(c);
      if (!e) continue;
      ++built;
      auto const valid = verify(e->graph);
      REQUIRE_MESSAGE(valid.ok(), valid.message());
      auto const ordered = check_order(e->graph, e->order);
      REQUIRE_MESSAGE(ordered.ok(), ordered.message());
      given_or<roofline> const cost{roofline::host(2)};
      auto const result = simulate(e->graph, e->order, cost);
      auto const p = make_plan(candidate{e->graph, e->order, result}, g);
      stated_durations const stated({std::nullopt, true, roofline::host(2)});
      auto const verdict = verify_plan(g, p, stated);
      REQUIRE_MESSAGE(verdict.ok(), verdict.message());
      for (auto o : e->graph.ops()) {
        if (e->graph.record(o).part == nothing<part_id>) continue;
        ++parts;
        auto const* x = e->graph.as<op::opaque>(o);
        REQUIRE(x);                                                 // all of them were
        if (x->seconds > 0) CHECK(cost(e->graph, o) < x->seconds);  // a part is quicker than the whole
      }
    }
  }
  CHECK(built > cases(200));
  CHECK(parts > cases(2000));
}

TEST_CASE("a graph that fission has changed by mistake is refused, or gives the same all the same") {
  host_backend backend;
  std::size_t refused = 0, accepted = 0;
  for (std::uint64_t seed = 0; seed < cases(200u); ++seed) {
    auto const g = random_model(seed, 10);
    auto const c = judged(g, given_order{}(g));
    auto const sources = random_sources(g, seed);
    set_step(g, sources);
    auto const expected = run_plainly(g, c.order, sources, backend);
    random_stream draw(seed, 11);
    auto const e = seed % 2 ? parts_of_parts(c, draw) : some_fissions(c, draw);
    if (!e) continue;
    each_mistake(*e, draw, 12, [&](graph const& wrong, schedule const& order, std::string const& what) {
      CAPTURE(seed);
      CAPTURE(what);
      if (!verify_plan(g, make_plan(judged(wrong, order), g, {}, quick)).ok()) {
        ++refused;
        return;
      }
      ++accepted;
      REQUIRE(same_result(g, expected, run_plainly(wrong, order, sources, backend), 2e-4));
    });
  }
  CHECK(refused > cases(100));
  CHECK(accepted < refused / 20);
}

TEST_CASE("of ops whose meaning is not known, every mistake in a part is refused") {
  std::size_t refused = 0;
  given_or<roofline> const cost{roofline::host(2)};
  stated_durations const stated({std::nullopt, true, roofline::host(2)});
  for (std::uint64_t seed = 0; seed < (sanitized ? 2 : 100); ++seed) {
    auto const g = opaque_twin(random_model(seed, 10));
    auto const c = judged(g, given_order{}(g));
    random_stream draw(seed, 12);
    auto const e = seed % 2 ? parts_of_parts(c, draw) : some_fissions(c, draw);
    if (!e) continue;
    each_mistake(*e, draw, 20, [&](graph const& wrong, schedule const& order, std::string const& what) {
      auto const p = make_plan(candidate{wrong, order, simulate(wrong, order, cost)}, g, {}, quick);
      CAPTURE(seed);
      CAPTURE(what);
      CHECK_FALSE(verify_plan(g, p, stated).ok());
      ++refused;
    });
  }
  CHECK(refused > (sanitized ? 4 : 200));
}

TEST_CASE("rows that an op gathers again and again are read by each part for itself alone") {
  // A table of 8 rows, 64 of which are gathered: 2048 bytes are read of 256. Each of 4 parts reads a quarter of that.
  graph_editor edit{standard_operators::facets};
  auto const table = edit.add_source(role::weight, {dtype::f32, {8, 8}});
  auto const which = edit.add_source(role::input, {dtype::i64, {64}});
  auto const scale = edit.add_source(role::weight, {dtype::f32, {8}});
  auto const rows = tensor_type{dtype::f32, {64, 8}};
  op::opaque gathers, scales;
  gathers.read = 2048 + 512, gathers.written = 2048, gathers.seconds = 1e-6;
  scales.read = 2048 + 32, scales.written = 2048, scales.seconds = 1e-6;
  std::array const made{output_rule{tensor_layout::dense(rows)}};
  std::array const along_which{dim_link{1, 0, 0, 0, combine::concat}},
      along_rows{dim_link{0, 0, 0, 0, combine::concat}};
  std::array const read{table, which};
  auto const a = edit.add_opaque("gather", gathers, read, made, {}, {}, along_which);
  std::array const scaled{edit.output(a, 0), scale};
  auto const b = edit.add_opaque("scale", scales, scaled, made, {}, {}, along_rows);
  edit.keep(edit.output(b), role::output);
  graph const g(std::move(edit).finish());
  auto const c = judged(g, given_order{}(g));
  auto const e = fission_of{{which, 0}, 0, 1, 4}.apply(c);
  REQUIRE(e);
  for (auto o : e->graph.ops()) {
    auto const* x = e->graph.as<op::opaque>(o);
    if (!x) continue;
    auto const whole = e->graph.target(o) == "gather" ? 256.0 : 32.0;  // bytes that each part reads of what is not cut
    auto const all = e->graph.target(o) == "gather" ? gathers.read : scales.read;
    auto const in_whole = e->graph.target(o) == "gather" ? 256.0 + 512 : 2048.0 + 32;
    auto const in_part = whole + (in_whole - whole) / 4;
    CHECK(x->read == doctest::Approx(in_part + (all - in_whole) / 4));
    CHECK(x->written == doctest::Approx(512));
  }
  given_or<roofline> const cost{roofline::host(2)};
  auto const p = make_plan(candidate{e->graph, e->order, simulate(e->graph, e->order, cost)}, g);
  auto const verdict = verify_plan(g, p, stated_durations({std::nullopt, true, roofline::host(2)}));
  CHECK_MESSAGE(verdict.ok(), verdict.message());
}

TEST_CASE("what every part makes alike is read by ops of the same part, and by others from the first") {
  graph_editor edit(standard_operators::facets);
  tensor_type const rows{dtype::f32, {8, 4}}, state{dtype::i64, {2}};
  auto const x = edit.add_source(role::input, rows);
  auto const link = [](int input, int output, combine how = combine::concat) {
    return dim_link{static_cast<std::int16_t>(input), 0, static_cast<std::int16_t>(output), 0, how};
  };
  op::opaque work;
  work.flops = 64, work.read = 128, work.written = 128, work.seconds = 1e-6;
  std::array const made{output_rule{tensor_layout::dense(rows)}, output_rule{tensor_layout::dense(state)}};
  std::array const both{link(0, 0), link(0, -1, combine::same)};
  auto const a = edit.add_opaque("draw", work, {&x, 1}, made, {}, {}, both);
  std::array const in{edit.output(a, 0), edit.output(a, 1)};
  std::array const first{link(0, 0)};
  auto const b = edit.add_opaque("draw_again", work, in, {&made[0], 1}, {}, {}, first);
  edit.keep(edit.output(b), role::output);
  SUBCASE("read inside alone") {}
  SUBCASE("kept too") { edit.keep(edit.output(a, 1), role::output); }
  graph const g(std::move(edit).finish());
  auto const c = judged(g, given_order{}(g));
  auto const e = fission_of{{x, 0}, 0, 1, 4}.apply(c);
  REQUIRE(e);
  std::size_t parts = 0;
  for (auto o : e->graph.ops()) {
    parts += e->graph.record(o).part != nothing<part_id>;
    CHECK_FALSE(e->graph.as<op::combine_into>(o));
  }
  CHECK(parts == 8);  // both ops: the second waits for nothing
  auto const valid = verify(e->graph);
  REQUIRE_MESSAGE(valid.ok(), valid.message());
  given_or<roofline> const cost{roofline::host(2)};
  auto const p = make_plan(candidate{e->graph, e->order, simulate(e->graph, e->order, cost)}, g);
  auto const verdict = verify_plan(g, p, stated_durations({std::nullopt, true, roofline::host(2)}));
  CHECK_MESSAGE(verdict.ok(), verdict.message());
}
