// A graph as an export from PyTorch would tell it, and back.
#pragma once

#include <neap/import/known_operators.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/plan/schedule.hpp>

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace neap::testing {

/// How PyTorch calls an op and its arguments; no name where it has none of this form.
struct aten_text {
  std::string target;
  nlohmann::json args = nlohmann::json::array();
};
inline aten_text aten_text_of(op_graph const& g, op_id o) {
  using nlohmann::json;
  aten_text t;
  auto const inputs = g.inputs(o);
  json in = json::array();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    for (std::size_t i = 0; i < k; ++i)
      if (inputs[i] == inputs[k]) return t;  // a file lists a tensor once
    in.push_back("%" + std::to_string(k));
  }
  auto const list = [](extents const& e) { return std::vector<std::int64_t>(e.begin(), e.end()); };
  auto const dims = list(g.type(g.output(o)).dims);
  auto const say = [&](char const* target, auto... more) {
    t = {target, in};
    (t.args.push_back(more), ...);
  };
  if (g.as<op::add>(o)) say("aten.add.Tensor");
  if (g.as<op::sub>(o)) say("aten.sub.Tensor");
  if (g.as<op::mul>(o)) say("aten.mul.Tensor");
  if (g.as<op::neg>(o)) say("aten.neg.default");
  if (g.as<op::tanh>(o)) say("aten.tanh.default");
  if (auto const* x = g.as<op::mul_scalar>(o)) say("aten.mul.Scalar", x->value);
  if (auto const* x = g.as<op::add_scalar>(o)) say("aten.add.Tensor", x->value);
  if (auto const* x = g.as<op::matmul>(o); x && !x->transpose_a && !x->transpose_b)
    say(dims.size() == 2 ? "aten.mm.default" : "aten.bmm.default");
  if (auto const* x = g.as<op::permute>(o)) say("aten.permute.default", list(x->axes));
  if (g.as<op::reshape>(o)) say("aten.view.default", dims);
  if (g.as<op::copy>(o)) say("aten.clone.default");
  if (g.as<op::broadcast_to>(o)) say("aten.expand.default", dims);
  if (auto const* x = g.as<op::sum>(o)) say("aten.sum.dim_IntList", list(x->axes), x->keepdim);
  if (auto const* x = g.as<op::slice>(o)) say("aten.slice.Tensor", x->axis, x->start, x->stop);
  if (auto const* x = g.as<op::pad>(o); x && x->value == 0)
    say("aten.slice_backward.default", dims, x->axis, x->before, dims[static_cast<std::size_t>(x->axis)] - x->after, 1);
  if (auto const* x = g.as<op::concat>(o)) t = {"aten.cat.default", json::array({in, x->axis})};
  if (auto const* x = g.as<op::conv2d>(o)) {
    say("aten.convolution.default");
    if (inputs.size() == 2) t.args.push_back(nullptr);
    for (auto const* e : {&x->stride, &x->padding, &x->dilation}) t.args.push_back(list(*e));
    t.args.push_back(false), t.args.push_back(std::vector{0, 0}), t.args.push_back(x->groups);
  }
  return t;
}

inline std::vector<output_rule> rules_of(graph const& g, op_id o) {
  std::vector<output_rule> rules;
  for (auto v : g.outputs(o)) {
    auto const& r = g.record(v);
    rules.push_back({g.layout(v), r.alias, r.of, r.alias == alias_kind::fresh ? g.bytes(r.storage) : -1});
  }
  return rules;
}

/// What the reader of a file says of it.
inline std::optional<io::known_operator> meaning_of(graph const& g, op_id o, aten_text const& text) {
  std::vector<tensor_layout> in, out;
  std::vector<int> places;
  for (auto v : g.inputs(o)) in.push_back(g.layout(v));
  for (auto v : g.outputs(o)) places.push_back(static_cast<int>(out.size())), out.push_back(g.layout(v));
  return io::known_aten({text.target, &text.args, nullptr, in, out, places});
}

/// The same graph with PyTorch's ops in place of those that it has; what their readers know of them is known.
inline graph aten_twin(graph const& g) {
  graph_editor edit(g.facet_table());
  table<value_id, value_id> to(g.value_count(), nothing<value_id>);
  for (auto v : g.sources()) to[v] = edit.add_source_at(g.role(v), g.layout(v), g.name(v), g.bytes(g.storage(v)));
  for (auto o : g.ops()) {
    std::vector<value_id> in;
    for (auto v : g.inputs(o)) in.push_back(to[v]);
    auto const rules = rules_of(g, o);
    auto const text = aten_text_of(g, o);
    op::opaque what;
    auto const w = flow::cost(g, o);
    what.flops = w.flops, what.read = w.read, what.written = w.written;
    what.seconds = flow::is_view(g, o) ? 0 : 1e-6;
    auto const id = text.target.empty() ? edit.add_given(g.view(o), in, rules)
                                        : edit.add_opaque(text.target, what, in, rules, g.name(o),
                                                          nlohmann::json{{"args", text.args}}.dump());
    if (auto const known = meaning_of(g, o, text)) edit.set_meaning(id, known->view());
    for (std::size_t j = 0; j < rules.size(); ++j) to[g.outputs(o)[j]] = edit.output(id, static_cast<int>(j));
  }
  for (auto v : g.kept()) edit.keep(to[v], g.role(v));
  return graph(std::move(edit).finish());
}

/// The graph with what its ops mean in their place, in an order, so that it can be run.
inline graph by_meaning(graph const& g, schedule const& order) {
  graph_editor edit(g.facet_table());
  table<value_id, value_id> to(g.value_count(), nothing<value_id>);
  for (auto v : g.sources()) to[v] = edit.add_source_at(g.role(v), g.layout(v), g.name(v), g.bytes(g.storage(v)));
  for (auto o : order) {
    std::vector<value_id> in;
    for (auto v : g.inputs(o)) in.push_back(to[v]);
    auto const rules = rules_of(g, o);
    auto const id = edit.add_given(g.meaning(o), in, rules);
    for (std::size_t j = 0; j < rules.size(); ++j) to[g.outputs(o)[j]] = edit.output(id, static_cast<int>(j));
  }
  for (auto v : g.kept()) edit.keep(to[v], g.role(v));
  return graph(std::move(edit).finish());
}

}  // namespace neap::testing
