#include <neap/block/backward_of.hpp>

#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

#include <neap/block/cut.hpp>

#include <utility>

using namespace neap;
using namespace neap::testing;

namespace {

/// Differentiates as train/differentiate.hpp does, and tells which op each new one was added for: the truth.
std::vector<op_id> gradients_told(graph_editor& edit, value_id loss) {
  std::size_t const ops = edit.graph().op_count();
  std::vector<op_id> of;
  std::vector<value_id> gradient(edit.graph().value_count(), nothing<value_id>);
  auto const note = [&](op_id o) { of.resize(edit.graph().op_count() - ops, o); };
  std::vector<unsigned char> needed(edit.graph().value_count());
  for (auto v : edit.graph().sources()) needed[index(v)] = edit.graph().role(v) == role::weight;
  for (std::size_t i = 0; i < ops; ++i)
    for (auto v : edit.graph().inputs(id_at<op_id>(i)))
      if (needed[index(v)])
        for (auto u : edit.graph().outputs(id_at<op_id>(i)))
          needed[index(u)] |= is_floating(edit.graph().type(u).element);
  op::fill one;
  one.dims = edit.graph().type(loss).dims;
  one.element = edit.graph().type(loss).element;
  one.value = 1;
  gradient[index(loss)] = edit.add(one, std::initializer_list<value_id>{})[0];
  note(edit.graph().producer(loss));
  for (std::size_t i = ops; i-- > 0;) {
    op_id const o = id_at<op_id>(i);
    std::vector<value_id> const in(edit.graph().inputs(o).begin(), edit.graph().inputs(o).end());
    auto const out = edit.outputs_of(o);
    std::vector<value_id> out_gradient;
    bool reached = false, wants = false;
    for (auto v : out) out_gradient.push_back(gradient[index(v)]), reached |= gradient[index(v)] != nothing<value_id>;
    plain_vector<bool> flags(in.size());
    for (std::size_t k = 0; k < in.size(); ++k)
      wants |= flags[k] = needed[index(in[k])] && is_floating(edit.graph().type(in[k]).element);
    if (!reached || !wants) continue;
    auto const& facets = edit.graph().facets(o);
    plain_vector<std::max_align_t> attributes(facets.size / sizeof(std::max_align_t) + 1);
    if (facets.size) std::memcpy(attributes.data(), edit.graph().attributes(o), facets.size);
    gradient_context c(edit, span_of(in), span_of(out), span_of(out_gradient), span_of(flags));
    facets.gradient(attributes.data(), c);
    for (std::size_t k = 0; k < in.size(); ++k) {
      auto const x = c.gradients()[k];
      if (x == nothing<value_id> || !flags[k]) continue;
      auto& sum = gradient[index(in[k])];
      sum = sum == nothing<value_id> ? x : edit.add(op::add{}, {sum, x})[0];
    }
    note(o);
  }
  for (auto v : edit.graph().sources())
    if (edit.graph().role(v) == role::weight && gradient[index(v)] != nothing<value_id>)
      edit.keep(gradient[index(v)], role::gradient);
  return of;
}

/// The forward part of a random model alone.
std::pair<graph_editor, value_id> forward_of(graph const& g) {
  auto const parts = make_basic(g).part;
  graph_editor e{operator_table(standard_operators::facets)};
  std::vector<value_id> to(g.value_count(), nothing<value_id>);
  for (auto v : g.sources()) to[index(v)] = e.add_source(g.role(v), g.type(v), g.name(v));
  value_id loss = nothing<value_id>;
  for (auto o : g.ops()) {
    if (parts[o] != step_part::forward) continue;
    std::vector<value_id> in;
    for (auto v : g.inputs(o)) in.push_back(to[index(v)]);
    auto const out = e.emit(g.view(o), in);
    for (std::size_t j = 0; j < out.size(); ++j) to[index(g.outputs(o)[j])] = out[j];
  }
  for (auto v : g.kept())
    if (g.role(v) == role::loss) loss = to[index(v)];
  e.keep(loss, role::loss);
  return {std::move(e), loss};
}

}  // namespace

TEST_CASE("gradients are found where they were made: nearly every op, and all of them block by block") {
  std::size_t ops = 0, right = 0, in_block = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto [edit, loss] = forward_of(random_model(seed, 24));
    auto const forward = edit.graph().op_count();
    auto const truth = gradients_told(edit, loss);
    auto const g = graph(std::move(edit).finish());
    REQUIRE(g.op_count() == forward + truth.size());
    auto const b = make_basic(g);
    auto const d = make_dataflow(g, b);
    auto const p = simplify(g, d);
    auto const found = find_backward(g, b, p);
    auto const ends = cut_at_separators(p);
    auto const block = [&](std::uint32_t n) { return std::upper_bound(ends.begin(), ends.end(), n) - ends.begin(); };
    for (std::size_t i = 0; i < truth.size(); ++i) {
      auto const o = id_at<op_id>(forward + i);
      auto const n = p.node_of[truth[i]];
      if (b.part[o] == step_part::forward || n == simplified_program::prologue_node) continue;
      ++ops;
      if (found.node[o] == no_id) continue;
      right += found.node[o] == n;
      in_block += block(found.node[o]) == block(n);
    }
  }
  MESSAGE(ops, " ops, ", right, " at their node, ", in_block, " in their block");
  CHECK(ops > 2000);
  CHECK(right * 100 >= ops * 90);
  CHECK(in_block * 100 >= ops * 97);
}

TEST_CASE("never before what it reads: no op is of a later node than the makers of its arguments") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto const g = seed % 2 ? opaque_graph(seed, 40) : random_model(seed, 40);
    auto const b = make_basic(g);
    auto const p = simplify(g, make_dataflow(g, b));
    auto const found = find_backward(g, b, p);
    for (auto o : g.ops()) {
      if (b.part[o] == step_part::forward) CHECK(found.node[o] == no_id);
      if (found.node[o] == no_id) continue;
      CHECK(found.node[o] < p.nodes.size());
      for (auto v : g.inputs(o))
        if (auto const from = g.producer(v);
            from != nothing<op_id> && b.part[from] != step_part::forward && found.node[from] != no_id)
          CHECK(found.node[o] <= found.node[from]);
    }
  }
}
