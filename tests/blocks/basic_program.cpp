#include <neap/blocks/basic_program.hpp>

#include "../support/message.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace neap;
using namespace neap::testing;

TEST_CASE("every op has a line, in its part, in an order that can run") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const g = seed % 2 ? random_model(seed) : opaque_graph(seed);
    auto const p = make_basic(g);
    CHECK(is_topological(g, p.order.order));
    auto const text = to_text(g, p);
    CHECK(static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) ==
          g.op_count() + (p.count(step_part::forward) > 0) + (p.count(step_part::backward) > 0) +
              (p.count(step_part::update) > 0));
    CHECK(p.count(step_part::forward) + p.count(step_part::backward) + p.count(step_part::update) == g.op_count());
  }
}

TEST_CASE("a line says operator, attributes, arguments") {
  graph_editor e{operator_table(standard_operators::facets)};
  auto const x = e.add_source(role::input, {dtype::f32, {4, 8}}, "x"),
             w = e.add_source(role::weight, {dtype::f32, {2, 8}}, "w");
  op::matmul m;
  m.transpose_b = true;
  auto const y = e.add(m, {x, w})[0];
  auto const z = e.add(op::mul_scalar{0.5}, {y})[0];
  op::opaque o;
  value_id const in[] = {z};
  output_rule const out[] = {{e.layout_of(z), alias_kind::fresh, -1, -1}};
  e.keep(e.output(e.add_opaque("aten.foo", o, in, out, "foo", "{\"args\":[1]}")), role::output);
  auto const g = graph(std::move(e).finish());
  CHECK(to_text(g, make_basic(g)) ==
        "# forward\n"
        "x2 = matmul(x, w; transpose_a=false, transpose_b=true)\n"
        "x3 = mul_scalar(x2; value=0.5)\n"
        "x4 = aten.foo(x3; {\"args\":[1]})\n");
}

TEST_CASE("an order that cannot run is refused") {
  auto const g = opaque_graph(1);
  auto order = make_basic(g).order;
  std::reverse(order.order.begin(), order.order.end());
  CHECK(message_of([&] { (void)make_basic(g, order); }) == "blocks: the order is not one in which the program can run");
}
