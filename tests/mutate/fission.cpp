#include <neap/mutate/fission.hpp>

#include <neap/ir/verify.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../support/plain_run.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace neap;
using namespace neap::testing;

namespace {

candidate<graph> judged(graph g, schedule s) {
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

TEST_CASE("random stretches of random training steps run in parts and give the same") {
  host_backend backend;
  std::size_t built = 0, refused = 0, inside = 0, partial = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    auto const g = random_model(seed, 14);
    auto const c = judged(g, given_order{}(g));
    auto sources = random_sources(g, seed);
    for (std::size_t k = 0; k < sources.size(); ++k)  // the step
      if (g.type(g.sources()[k]) == tensor_type{dtype::i64, {}}) *reinterpret_cast<std::int64_t*>(sources[k].data()) = 3;
    auto const expected = run_plainly(g, c.order, sources, backend);
    dimension_graph const dims(g);
    random_stream draw(seed, 9);
    for (int tries = 0; tries < 6; ++tries) {
      auto const n = static_cast<std::uint32_t>(c.order.size());
      fission_of f;
      f.first = draw.below(n), f.last = f.first + draw.below(n - f.first);
      auto const v = id_at<value_id>(draw.below(static_cast<std::uint32_t>(g.value_count())));
      if (g.type(v).rank() == 0) continue;
      f.along = {v, static_cast<std::int32_t>(draw.below(static_cast<std::uint32_t>(g.type(v).rank())))};
      auto const extent = g.type(v).dims[f.along.axis];
      f.parts = 2 + draw.below(3);
      if (extent % f.parts != 0) continue;
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
      REQUIRE(got.kept.size() == expected.kept.size());
      for (std::size_t k = 0; k < got.kept.size(); ++k)
        REQUIRE(difference(expected.kept[k], got.kept[k], g.type(g.kept()[k]).element) < 2e-4);
      for (std::size_t k = 0; k < got.sources.size(); ++k)
        REQUIRE(difference(expected.sources[k], got.sources[k], g.type(g.sources()[k]).element) < 2e-4);
    }
  }
  MESSAGE(built << " built, " << refused << " refused, " << inside << " parts, " << partial << " combined");
  CHECK(built > 400);
  CHECK(partial > 300);
}
