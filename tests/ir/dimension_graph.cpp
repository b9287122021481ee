#include <neap/ir/dimension_graph.hpp>

#include <neap/ir/standard_operators.hpp>

#include "../support/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
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

namespace {
/// A graph with one opaque op, of the relations that are given, and values of the shapes that are given.
struct one_op {
  op_graph g;
  std::vector<value_id> in, out;
  one_op(std::vector<shape> const& inputs, std::vector<shape> const& outputs, std::vector<dim_link> const& links) {
    graph_editor edit(standard_operators::facets);
    for (auto const& s : inputs) in.push_back(edit.add_source(role::input, {dtype::f32, s}));
    std::vector<output_rule> rules;
    for (auto const& s : outputs) rules.push_back({tensor_layout::dense({dtype::f32, s})});
    auto const o = edit.add_opaque("x", {}, in, rules, {}, {}, links);
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      out.push_back(edit.output(o, static_cast<int>(j)));
      edit.keep(out.back(), role::output);
    }
    g = std::move(edit).finish();
  }
};
constexpr dim_link same(int i, int a, int j, int b) {
  return {static_cast<std::int16_t>(i), static_cast<std::int16_t>(a), static_cast<std::int16_t>(j),
          static_cast<std::int16_t>(b)};
}
constexpr dim_link reduced(int i, int a, int k, combine how = combine::sum) {
  auto l = same(i, a, -1, k);
  l.how = how;
  return l;
}
}  // namespace

TEST_CASE("one loop gives pieces of one output and partial results of another") {
  one_op const x({{8, 4}, {8, 4}, {4}}, {{8, 4}, {4}},
                 {same(0, 0, 0, 0), same(1, 0, 0, 0), reduced(0, 0, 0), reduced(1, 0, 0)});
  dimension_graph const dims(x.g);
  auto const rows = dims.component(x.in[0], 0);
  CHECK(dims.is_cuttable(rows));
  REQUIRE(dims.members(rows).size() == 1);
  CHECK(dims.members(rows)[0] == dim_member{op_id{0}, participation::spatial, combine::sum});
  // An input that is cut for one of them only: two loops.
  one_op const y({{8, 4}, {8, 4}, {4}}, {{8, 4}, {4}}, {same(0, 0, 0, 0), reduced(0, 0, 0), reduced(1, 0, 0)});
  dimension_graph const two(y.g);
  CHECK(has(two.obstacles(two.component(y.in[0], 0)), dim_obstacle::two_loops));
  // Combined in two ways.
  one_op const z({{8, 4}}, {{8, 4}, {4}}, {same(0, 0, 0, 0), reduced(0, 0, 0), reduced(0, 0, 0, combine::max)});
  dimension_graph const ways(z.g);
  CHECK(has(ways.obstacles(ways.component(z.in[0], 0)), dim_obstacle::two_loops));
  // An output that is no piece, and no way to combine it.
  one_op const w({{8, 4}}, {{8, 4}, {4}}, {same(0, 0, 0, 0)});
  dimension_graph const lost(w.g);
  CHECK(has(lost.obstacles(lost.component(w.in[0], 0)), dim_obstacle::unrelated_output));
}

TEST_CASE("a partial result that others take for a piece is an obstacle") {
  graph_editor edit(standard_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {8, 8}});
  output_rule const row{tensor_layout::dense({dtype::f32, {8}})}, whole{tensor_layout::dense({dtype::f32, {8, 8}})};
  std::array const summed{reduced(0, 0, 0)};
  std::array const both{same(0, 0, 0, 0), same(1, 0, 0, 0)};
  auto const a = edit.output(edit.add_opaque("sum", {}, {&x, 1}, {&row, 1}, {}, {}, summed));
  std::array const in{x, a};
  edit.keep(edit.output(edit.add_opaque("scale", {}, in, {&whole, 1}, {}, {}, both)), role::output);
  op_graph const g = std::move(edit).finish();
  dimension_graph const dims(g);
  CHECK(has(dims.obstacles(dims.component(x, 0)), dim_obstacle::unrelated_output));
}

TEST_CASE("axes of several extents: what divides them all is what can be cut") {
  graph_editor edit(standard_operators::facets);
  auto const x = edit.add_source(role::input, {dtype::f32, {12, 5, 3}});
  auto const y = edit.add(op::reshape{{60, 3}}, {x})[0];
  auto const z = edit.add(op::reshape{{4, 15, 3}}, {y})[0];
  edit.keep(edit.add(op::copy{}, {z})[0], role::output);
  op_graph const g = std::move(edit).finish();
  dimension_graph const dims(g);
  auto const c = dims.component(x, 0);
  CHECK(dims.component(y, 0) == c);
  CHECK(dims.component(z, 0) == c);
  CHECK(dims.extent(c) == 4);
  CHECK(dims.is_cuttable(c));
  CHECK(dims.members(c).size() == 3);
  // An op that relates 6 to 4 is not believed.
  one_op const odd({{6}}, {{4}}, {same(0, 0, 0, 0)});
  dimension_graph const other(odd.g);
  CHECK(has(other.obstacles(other.component(odd.in[0], 0)), dim_obstacle::extents_differ));
  one_op const none({{6}}, {{0}}, {same(0, 0, 0, 0)});
  dimension_graph const nothing_there(none.g);
  CHECK(has(nothing_there.obstacles(nothing_there.component(none.in[0], 0)), dim_obstacle::extents_differ));
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
        CHECK(g.type(a.value).dims[a.axis] % dims.extent(c) == 0);
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
