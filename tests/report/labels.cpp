#include <neap/report/labels.hpp>

#include "../support/opaque_graph.hpp"

#include <doctest/doctest.h>

#include <neap/schedule/order.hpp>

using namespace neap;
using namespace neap::testing;

TEST_CASE("recomputed is what has an origin that ran before; the original is the first, whatever its number") {
  auto const g = opaque_graph(4);
  auto const order = given_order{}(g);
  for (auto again : {recomputed_ops(g, order)})
    for (auto o : g.ops()) CHECK(!again[o]);
  graph_editor edit{g};
  op_id copied = nothing<op_id>;
  for (auto o : g.ops())
    if (flow::is_recomputable(g, o) && !flow::is_view(g, o)) copied = o;
  REQUIRE(copied != nothing<op_id>);
  auto const copy = edit.clone(copied);
  graph const twice(std::move(edit).finish());
  schedule s = order;
  s.order.push_back(copy);
  auto again = recomputed_ops(twice, s);
  CHECK(again[copy]);
  CHECK(!again[copied]);
  for (auto& o : s.order) o = o == copied ? copy : o == copy ? copied : o;
  again = recomputed_ops(twice, s);
  CHECK(again[copied]);
  CHECK(!again[copy]);
}

TEST_CASE("names: given ones, else the operator and its number") {
  auto const g = opaque_graph(1);
  for (auto o : g.ops()) CHECK(op_label(g, o) == std::string(g.name(o)));
  CHECK(value_label(g, g.sources()[0]) == "w0");
  for (auto o : g.ops())
    for (auto v : g.outputs(o))
      CHECK(value_label(g, v) ==
            std::string(g.name(o)) + (v == g.output(o) ? "" : "." + std::to_string(index(v) - index(g.output(o)))));
}
