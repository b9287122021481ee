#include <neap/ir/dimension_graph.hpp>

#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace neap;
using neap::testing::random_graph;
using neap::testing::toy_operators;
namespace toy = neap::testing::toy;

namespace {

std::vector<dim_link> links_of(op_graph const& g, op_id o, std::vector<tensor_layout>& in,
                               std::vector<tensor_layout>& out) {
  in.clear(), out.clear();
  for (auto v : g.inputs(o)) in.push_back(g.layout(v));
  for (auto v : g.outputs(o)) out.push_back(g.layout(v));
  dim_context c(in, out);
  g.facets(o).relate(g.attributes(o), c);
  return {c.links().begin(), c.links().end()};
}

bool has(std::span<dim_obstacle const> all, dim_obstacle::kind_type kind) {
  return std::any_of(all.begin(), all.end(), [&](dim_obstacle const& x) { return x.kind == kind; });
}

}  // namespace

TEST_CASE("a batch goes through a multi-layer perceptron; weights' gradients are summed over it") {
  graph_editor edit(toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {8, 4}});
  auto const w = edit.add_source(role::weight, {dtype::f32, {4, 6}});
  auto const y = edit.add(toy::matmul{}, {x, w})[0];   // op 0
  auto const z = edit.add(toy::unary{}, {y})[0];       // op 1
  auto const t = edit.add(toy::transpose{}, {x})[0];   // op 2
  auto const dw = edit.add(toy::matmul{}, {t, z})[0];  // op 3: reduced over the batch
  edit.keep(dw, role::gradient);
  op_graph const g = std::move(edit).finish();
  dimension_graph const dims(g);
  auto const batch = dims.component(x, 0);
  CHECK(dims.component(y, 0) == batch);
  CHECK(dims.component(z, 0) == batch);
  CHECK(dims.component(t, 1) == batch);
  CHECK(dims.reduced_component(op_id{3}, 0) == batch);
  CHECK(dims.extent(batch) == 8);
  CHECK(dims.is_cuttable(batch));
  std::vector<dim_member> const members{
      {op_id{0}}, {op_id{1}}, {op_id{2}}, {op_id{3}, participation::reduced, combine::sum}};
  CHECK(std::ranges::equal(dims.members(batch), members));
  // The inner axis: x's columns, w's rows, and the rows of dw through the transposed x.
  auto const inner = dims.component(w, 0);
  CHECK(dims.component(dw, 0) == inner);
  CHECK(dims.reduced_component(op_id{0}, 0) == inner);
  CHECK(dims.is_cuttable(inner));
  CHECK(dims.component(w, 1) == dims.component(dw, 1));
  CHECK(dims.component_count() == 3);
}

TEST_CASE("obstacles: two axes, two loops, an input or an output that is not related, other extents") {
  graph_editor edit(toy_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {8, 4}});
  auto const t = edit.add(toy::transpose{}, {x})[0];
  auto const s = edit.add(toy::matmul{}, {x, t})[0];  // x x^T: both axes are the rows of x
  edit.keep(s, role::output);
  auto const q = edit.add_source(role::input, {dtype::f32, {4, 4}});
  auto const qq = edit.add(toy::matmul{}, {q, edit.add(toy::binary{}, {q, edit.add(toy::transpose{}, {q})[0]})[0]})[0];
  edit.keep(qq, role::output);
  op_graph const g = std::move(edit).finish();
  dimension_graph const dims(g);
  auto const rows = dims.component(x, 0);
  CHECK(has(dims.obstacles(rows), dim_obstacle::two_axes));
  CHECK_FALSE(dims.is_cuttable(rows));
  CHECK(dims.is_cuttable(dims.component(x, 1)));  // the inner axis can be cut, and the products summed
  CHECK(has(dims.obstacles(dims.component(q, 0)), dim_obstacle::two_loops));
}

TEST_CASE("components are the closure of the links, on random graphs") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    auto const g = random_graph(seed, {.copies = 1, .swaps = 1});
    dimension_graph const dims(g);
    std::vector<tensor_layout> in, out;
    std::size_t axes = 0, member_links = 0;
    for (auto o : g.ops())
      for (auto const& l : links_of(g, o, in, out)) {
        auto const v = g.inputs(o)[static_cast<std::size_t>(l.input)];
        auto const c = dims.component(v, l.in_axis);
        if (l.output >= 0) CHECK(dims.component(g.outputs(o)[static_cast<std::size_t>(l.output)], l.out_axis) == c);
        else CHECK(dims.reduced_component(o, l.out_axis) == c);
        auto const m = dims.members(c);
        CHECK(std::count_if(m.begin(), m.end(), [&](dim_member const& x) { return x.op == o; }) == 1);
        ++member_links;
      }
    std::size_t members = 0;
    for (auto c : dims.components()) {
      members += dims.members(c).size();
      for (auto const& a : dims.axes(c)) {
        CHECK(dims.component(a.value, a.axis) == c);
        if (!has(dims.obstacles(c), dim_obstacle::extents_differ))
          CHECK(g.type(a.value).dims[a.axis] == dims.extent(c));
        ++axes;
      }
      if (!dims.is_cuttable(c)) continue;
      for (std::size_t i = 1; i < dims.axes(c).size(); ++i) CHECK(dims.axes(c)[i].value != dims.axes(c)[i - 1].value);
    }
    CHECK(members <= member_links);
    std::size_t all = 0;
    for (auto v : g.values()) all += static_cast<std::size_t>(g.type(v).rank());
    CHECK(axes == all);
    // Without links, nothing is joined: opaque ops keep their axes apart.
    for (auto o : g.ops())
      if (g.as<op::opaque>(o)) CHECK(dims.reduced_count(o) == 0);
  }
}
