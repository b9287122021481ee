// The bodies of <neap/blocks/dataflow_program.hpp>.
#pragma once

#include <neap/blocks/dataflow_program.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 {

namespace detail {

NEAP_FUNC bool is_random(op_graph const& g, op_id o) {
  auto const* x = g.as<op::opaque>(o);
  return x ? x->rng : g.facets(o).random;
}

}  // namespace detail

NEAP_FUNC dataflow_program make_dataflow(op_graph const& g, basic_program const& b) {
  dataflow_program p;
  p.node_of.assign(g.op_count(), no_id);
  p.owner.assign(g.value_count(), nothing<op_id>);
  p.parent.assign(g.value_count(), nothing<value_id>);
  for (auto v : g.values()) {
    p.owner[v] = g.producer(g.record(g.storage(v)).first);
    p.parent[v] = g.base(v);
  }
  auto const positions_of = positions(b.order);
  table<value_id, unsigned char> weighted(g.value_count(), 0), anchored(g.value_count(), 0),
      reaches(g.value_count(), 0);  // from a weight, by floating values
  for (auto v : g.sources()) {
    weighted[v] = reaches[v] = g.role(v) == role::weight;
    anchored[v] = g.role(v) == role::input;
  }
  for (auto o : b.order) {
    if (b.part[o] != step_part::forward) continue;
    dataflow_node n;
    n.op = o;
    n.is_view = flow::is_view(g, o);
    n.is_random = detail::is_random(g, o);
    n.is_recomputable = flow::is_recomputable(g, o);
    n.workspace = flow::workspace(g, o);
    for (auto v : g.inputs(o)) {
      n.weighted |= weighted[v] != 0;
      n.trained |= reaches[v] != 0;
      n.anchored |= anchored[v] != 0;
      if (auto const from = g.producer(v); from != nothing<op_id>) n.data.push_back(from);
    }
    for (auto v : g.outputs(o)) {
      n.is_update |= g.record(v).alias == alias_kind::update;
      if (g.record(v).alias == alias_kind::fresh) n.bytes += g.bytes(g.storage(v));
      weighted[v] = n.weighted;
      reaches[v] = n.trained && is_floating(g.type(v).element);
      anchored[v] = n.anchored;
    }
    for (auto from : g.order_after(o))
      if (p.is_forward(from)) n.order.push_back(from);
    for (auto* list : {&n.data, &n.order}) {
      std::sort(list->begin(), list->end(), [&](op_id x, op_id y) { return positions_of[x] < positions_of[y]; });
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    p.node_of[o] = static_cast<std::uint32_t>(p.nodes.size());
    p.nodes.push_back(std::move(n));
  }
  // What leads to the loss; to the outputs, where there is none.
  bool loss = false;
  for (auto v : g.kept()) loss |= g.role(v) == role::loss;
  table<value_id, unsigned char> leads(g.value_count(), 0);
  for (auto v : g.kept()) leads[v] = g.role(v) == (loss ? role::loss : role::output);
  for (std::size_t i = p.nodes.size(); i-- > 0;) {
    auto& n = p.nodes[i];
    bool any = false;
    for (auto v : g.outputs(n.op)) any |= leads[v] && is_floating(g.type(v).element);
    n.trained &= any;
    if (any)
      for (auto v : g.inputs(n.op)) leads[v] = 1;
  }
  return p;
}

NEAP_FUNC std::string to_text(op_graph const& g, dataflow_program const& p) {
  std::string s;
  for (auto const& n : p.nodes) {
    s += detail::assignment_text(g, n.op) + "  #";
    for (auto v : g.outputs(n.op)) {
      s += " " + detail::type_text(g, v);
      auto const& r = g.record(v);
      if (r.alias == alias_kind::view) s += " view of " + detail::value_text(g, p.parent[v]);
      if (r.alias == alias_kind::update) s += " update of " + detail::value_text(g, p.parent[v]);
      if (r.alias != alias_kind::fresh && p.owner[v] != nothing<op_id>)
        s += ", memory of " + detail::value_text(g, g.record(r.storage).first);
      s += ";";
    }
    if (n.is_random) s += " random;";
    if (n.trained) s += " trained;";
    s += "\n";
  }
  return s;
}

}}  // namespace neap::v0
