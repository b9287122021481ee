#include <neap/blocks/backward_of.hpp>

#include "../../examples/models/mlp.hpp"
#include "../support/opaque_graph.hpp"
#include "../support/random_model.hpp"

#include <doctest/doctest.h>

#include <neap/blocks/cut.hpp>
#include <neap/ir/operators/update.hpp>
#include <neap/model/program.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/train/loss.hpp>

#include <utility>

using namespace neap;
using namespace neap::testing;

namespace {

/// Differentiates as train/differentiate.hpp does, and tells which op each new one was added for: the truth.
std::vector<op_id> gradients_told(graph_editor& edit, value_id loss, bool updates) {
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
    if (edit.graph().role(v) == role::weight && gradient[index(v)] != nothing<value_id>) {
      if (updates) edit.add(op::sgd{}, {v, gradient[index(v)]});
      else edit.keep(gradient[index(v)], role::gradient);
    }
  return of;
}

struct score {
  std::size_t ops = 0, at_node = 0, in_block = 0;
};

/// How many gradients of a forward program, which gives its loss, are found where they were made. Constants and views,
/// which cost nothing, are left out.
score score_of(op_graph const& forward, value_id loss, bool updates) {
  graph_editor edit{forward};
  edit.keep(loss, role::loss);
  auto const ops = forward.op_count();
  auto const truth = gradients_told(edit, loss, updates);
  auto const g = graph(std::move(edit).finish());
  REQUIRE(g.op_count() >= ops + truth.size());
  auto const b = make_basic(g);
  auto const p = simplify(g, make_dataflow(g, b));
  auto const found = find_backward(g, b, p);
  auto const ends = cut_at_separators(p);
  auto const block = [&](std::uint32_t n) { return std::upper_bound(ends.begin(), ends.end(), n) - ends.begin(); };
  score s;
  table<op_id, unsigned char> depends(g.op_count(), 0);  // on values of the forward part
  for (std::size_t i = 0; i < truth.size(); ++i) {
    auto const o = id_at<op_id>(ops + i);
    for (auto v : g.inputs(o)) {
      auto const from = g.producer(v);
      depends[o] |= from != nothing<op_id> && (index(from) < ops || depends[from]);
    }
    auto const n = p.node_of[truth[i]];
    if (!depends[o] || flow::is_view(g, o) || n == simplified_program::prologue_node) continue;
    ++s.ops;
    if (found.node[o] == no_id) continue;
    s.at_node += found.node[o] == n;
    s.in_block += block(found.node[o]) == block(n);
  }
  return s;
}

template <class Model, class Loss>
score score_of(Model const& model, tensor const& x, tensor const& y, Loss const& loss, bool updates) {
  auto const p = trace([&](tensor a, tensor b) { return loss(model(a), b); }, x, y);
  return score_of(p.program, p.outputs[0], updates);
}

/// The forward part of a random model alone.
std::pair<graph, value_id> forward_of(graph const& g) {
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
  return {graph(std::move(e).finish()), loss};
}

}  // namespace

TEST_CASE("gradients of models are found where they were made: all in their blocks, nearly all at their nodes") {
  auto const entropy = [](tensor const& x, tensor const& y) { return cross_entropy_loss(x, y); };
  std::vector<std::int64_t> ids(4 * 32, 1);
  auto const tokens = tensor::from(ids, {4, 32});
  // Without updates nobody tells which bias a sum of gradients is of.
  auto const check = [](std::string const& name, score const& s, std::size_t percent) {
    INFO(name << ": " << s.ops << " ops, " << s.at_node << " at their node, " << s.in_block << " in their block");
    CHECK(s.ops > 10);
    CHECK(s.in_block == s.ops);
    CHECK(s.at_node * 100 >= s.ops * percent);
  };
  for (bool fused : {true, false})
    for (double dropout : {0.0, 0.1}) {
      zoo::gpt_config c = zoo::gpt_config::toy();
      c.vocabulary = 300, c.context = 32, c.width = 32, c.layers = 3, c.fused_attention = fused, c.dropout = dropout;
      // Scaled queries are as large as queries: equal cuts leave their gradients to either node.
      check("gpt, updated", score_of(zoo::gpt(c), tokens, tokens, entropy, true), fused ? 90 : 84);
      check("gpt", score_of(zoo::gpt(c), tokens, tokens, entropy, false), fused ? 65 : 62);
    }
  zoo::mlp const mlp(zoo::mlp_config{{24, 64, 64, 64, 10}});
  auto const x = tensor::randn({32, 24}, 1), y = tensor::from(std::vector<std::int64_t>(32, 1), {32});
  for (bool updates : {true, false}) check("mlp", score_of(mlp, x, y, entropy, updates), 100);
}

namespace {

/// A program of opaque ops that is differentiated by hand: f("linear", {x, w}).
struct by_hand {
  graph_editor edit{operator_table(standard_operators::facets)};
  tensor_layout const layout = tensor_layout::dense({dtype::f32, {1024, 1024}});

  value_id source(role r) { return edit.add_source_at(r, layout, ""); }
  value_id f(char const* target, std::initializer_list<value_id> in) {
    op::opaque x;
    x.seconds = 1e-6;
    output_rule const out[] = {{layout, alias_kind::fresh, -1, -1}};
    return edit.output(edit.add_opaque(target, x, std::vector<value_id>(in), out));
  }
  /// The gradient of a weight or bias.
  value_id ends(char const* target, std::initializer_list<value_id> in) {
    auto const v = f(target, in);
    edit.keep(v, role::gradient);
    return v;
  }
};

/// Whether gradients are found at the nodes of these forward values, or at later ones, whose backward runs earlier.
void check_in_time(by_hand&& m, std::initializer_list<std::pair<value_id, value_id>> gradients) {
  auto const g = graph(std::move(m.edit).finish());
  auto const b = make_basic(g);
  auto const p = simplify(g, make_dataflow(g, b));
  auto const found = find_backward(g, b, p);
  for (auto [gradient, of] : gradients) CHECK(found.node[g.producer(gradient)] >= p.node_of[g.producer(of)]);
}

}  // namespace

TEST_CASE("what is drawn, and scales a result, has no gradient: the sum for a bias behind it is of that bias") {
  by_hand m;
  auto const x = m.source(role::input), w0 = m.source(role::weight), w1 = m.source(role::weight),
             w2 = m.source(role::weight);
  auto const h = m.f("linear", {x, w0}), y = m.f("linear", {h, w1}), copy = m.f("copy", {y}), drawn = m.f("draw", {});
  auto const z = m.f("linear", {m.f("scale", {copy, drawn}), w2}), loss = m.f("loss", {z});
  m.edit.keep(loss, role::loss);
  auto const dz = m.f("loss.gradient", {z});
  m.ends("linear.weight", {dz, m.edit.graph().inputs(m.edit.graph().producer(z))[0]});
  auto const dcopy = m.f("scale.gradient", {m.f("linear.gradient", {dz, w2}), drawn});
  auto const dy = m.f("copy.gradient", {dcopy});
  m.ends("linear.weight", {dy, h});
  auto const bias = m.ends("sum", {dy});
  m.ends("linear.weight", {m.f("linear.gradient", {dy, w1}), x});
  check_in_time(std::move(m), {{bias, y}});
}

TEST_CASE("a sum for a bias waits for no gradients that it does not read") {
  by_hand m;
  auto const x = m.source(role::input);
  auto const linear = [&](value_id v) {
    auto const w = m.source(role::weight);
    return std::pair(m.f("linear", {v, w}), w);
  };
  auto const [read, wr] = linear(x);
  auto const [h, wh] = linear(x);
  auto const [query, wq] = linear(h);
  auto const scaled = m.f("copy", {m.f("scale", {query})});
  auto const [key, wk] = linear(read);
  auto const copy = m.f("copy", {key}), met = m.f("meet", {scaled, copy});
  auto const [z, wz] = linear(met);
  m.edit.keep(m.f("loss", {z}), role::loss);
  auto const dz = m.f("loss.gradient", {z}), dmet = m.f("linear.gradient", {dz, wz});
  m.ends("linear.weight", {dz, met});
  auto const dscaled = m.f("meet.gradient", {dmet, copy}), dcopy = m.f("meet.gradient", {dmet, scaled});
  auto const dkey = m.f("copy.gradient", {dcopy});
  m.ends("linear.weight", {dkey, read});
  auto const dread = m.f("linear.gradient", {dkey, wk});
  auto const dquery = m.f("scale.gradient", {m.f("copy.gradient", {dscaled})});
  m.ends("linear.weight", {dquery, h});
  auto const bias = m.ends("sum", {dquery});
  m.ends("linear.weight", {m.f("linear.gradient", {dquery, wq}), x});
  m.ends("linear.weight", {dread, x});
  check_in_time(std::move(m), {{bias, query}});
}

TEST_CASE("programs without any structure: most gradients are found in their blocks") {
  score all;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    auto const [g, loss] = forward_of(random_model(seed, 24));
    auto const s = score_of(g, loss, seed % 2);
    all.ops += s.ops, all.at_node += s.at_node, all.in_block += s.in_block;
  }
  INFO(all.ops << " ops, " << all.at_node << " at their node, " << all.in_block << " in their block");
  CHECK(all.ops > 1500);
  CHECK(all.in_block * 100 >= all.ops * 90);
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
