#include <neap/mutate/reorder.hpp>

#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/graph_maker.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

namespace {
candidate as_written(graph g) {
  schedule s;
  for (auto o : g.ops()) s.order.push_back(o);
  REQUIRE(check_order(g, s));
  auto r = simulate(g, s, roofline::h100_like(), {1, false});
  return {std::move(g), std::move(s), std::move(r)};
}
/// The peak after the first move.
bytes_t after_one(candidate const& c) {
  auto stream = reorder{}(c);
  auto const m = stream.next();
  REQUIRE(m);
  auto const e = m->apply(c);
  REQUIRE(e);
  return simulate(e->graph, e->order, roofline::h100_like(), {1, false}).peak_bytes;
}
}  // namespace

TEST_CASE("what is wanted late is made late") {
  maker m;
  auto const x = m.in({10, 100}), y = m.in({10, 100});
  auto const late = tanh(x);
  auto const wide = summed(tanh(cat(1, {y, y, y})), {1});
  m.keep(summed(late, {1}) + wide);
  auto const c = as_written(m.done());
  CHECK(after_one(c) == c.result.peak_bytes - 8000);
}
TEST_CASE("an update runs as soon as its gradient is there, never before another reader of its weight") {
  maker m;
  auto const w = m.weight({10, 100}), x = m.in({10, 100}), y = m.in({10, 100});
  auto const g = tanh(x);  // the gradient
  auto const reads_w = summed(w * x, {1});
  auto const wide = summed(tanh(cat(1, {y, y, y})), {1});
  m.keep(wide + reads_w);
  m.keep(summed(descended(w, g), {0}));
  auto const c = as_written(m.done());
  auto stream = reorder{}(c);
  bool found = false;
  while (auto r = stream.next()) {
    if (!c.graph.as<op::sgd>(c.order[r->from])) continue;
    found = true;
    auto const e = r->apply(c);
    REQUIRE(e);
    auto const at = positions(e->order);
    auto const update = c.order[r->from];
    CHECK(simulate(e->graph, e->order, roofline::h100_like(), {1, false}).peak_bytes < c.result.peak_bytes);
    for (auto o : e->graph.ops())
      if (e->graph.as<op::mul>(o)) CHECK(at[o] < at[update]);
  }
  CHECK(found);
  // Before the product that still reads the weight it may not run.
  for (std::uint32_t p = 0; p < c.order.size(); ++p)
    if (c.graph.as<op::sgd>(c.order[p])) CHECK(!move_op{p, 0}.apply(c));
}
