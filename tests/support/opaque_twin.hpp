// A graph as somebody else's file would tell it.
#pragma once

#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>

#include "graph_text.hpp"

#include <span>
#include <string>
#include <vector>

namespace neap::testing {

/// The same graph of ops whose meaning is not known: types, aliasing, work and dimension relations are all that is left.
inline graph opaque_twin(graph const& g) {
  graph_editor edit(g.facet_table());
  table<value_id, value_id> to(g.value_count(), nothing<value_id>);
  for (auto v : g.sources()) to[v] = edit.add_source_at(g.role(v), g.layout(v), g.name(v), g.bytes(g.storage(v)));
  for (auto o : g.ops()) {
    std::vector<value_id> in;
    for (auto v : g.inputs(o)) in.push_back(to[v]);
    std::vector<output_rule> rules;
    for (auto v : g.outputs(o))
      rules.push_back({g.layout(v), g.record(v).alias, g.record(v).of, g.bytes(g.storage(v))});
    auto const links = g.links(o);
    auto const w = flow::cost(g, o);
    op::opaque what;
    what.flops = w.flops, what.read = w.read, what.written = w.written;
    what.seconds = flow::is_view(g, o) ? 0 : 1e-6 + w.flops * 1e-9;
    std::string details;
    for (auto const& a : g.facets(o).attributes)
      neap::detail::print_attribute(details, a.get(g.attributes(o))), details += ';';
    auto const id = edit.add_opaque(g.facets(o).name, what, in, rules, g.name(o), details, span_of(links));
    for (std::size_t j = 0; j < rules.size(); ++j) to[g.outputs(o)[j]] = edit.output(id, static_cast<int>(j));
  }
  for (auto v : g.kept()) edit.keep(to[v], g.role(v));
  return graph(std::move(edit).finish());
}

}  // namespace neap::testing
