// Pins by name or id: which ops and values of a graph are pinned, said apart from the graph.
//
//   auto const g = neap::pinned(step.program, {{neap::pin::run_once, "*.allreduce"}, {neap::pin::keep, op}});
//
// A pattern is a glob (* stands for any characters). It matches the names of ops and values; of an op also the name of its
// operator, which is what a file calls it: "aten.convolution.default", "c10d.*".
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/glob.hpp>
#include <neap/ir/editor.hpp>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap::inline v0 {

/// Pins all ops and values of a pattern, or one op or value.
struct pin_rule {
  pin_rule(pin_set p, std::string names) : pins(p), pattern(std::move(names)) {}
  pin_rule(pin_set p, std::string_view names) : pin_rule(p, std::string(names)) {}
  pin_rule(pin_set p, char const* names) : pin_rule(p, std::string(names)) {}
  pin_rule(pin_set p, op_id o) : pins(p), op(o) {}
  pin_rule(pin_set p, value_id v) : pins(p), value(v) {}

  pin_set pins;
  std::string pattern;
  op_id op = nothing<op_id>;
  value_id value = nothing<value_id>;
};
using pin_rules = std::vector<pin_rule>;

/// Applies one rule to a graph that is being edited. Throws neap::error for a pattern that matches nothing, an id out of
/// range, and pins that exclude each other. O((ops + values) * pattern).
NEAP_ONCE void add_pins(graph_editor& edit, pin_rule const& rule) {
  auto const& g = edit.graph();
  auto const refuse = [&](std::string const& what) { throw_error({"pin ", to_string(rule.pins), ": ", what}); };
  if (rule.op != nothing<op_id>) {
    if (index(rule.op) >= g.op_count()) refuse("there is no op " + std::to_string(index(rule.op)));
    return edit.add_pins(rule.op, rule.pins);
  }
  if (rule.value != nothing<value_id>) {
    if (index(rule.value) >= g.value_count()) refuse("there is no value " + std::to_string(index(rule.value)));
    return edit.add_pins(rule.value, rule.pins);
  }
  bool found = false;
  auto const matches = [&](std::string_view name) { return !name.empty() && detail::matches(rule.pattern, name); };
  for (auto o : g.ops()) {
    auto const* x = g.as<op::opaque>(o);
    if (!matches(g.name(o)) && !matches(x ? g.text(x->target) : g.facets(o).name)) continue;
    found = true;
    edit.add_pins(o, rule.pins);
  }
  for (auto v : g.values()) {
    bool const is_source = g.producer(v) == nothing<op_id>;
    auto const p = is_source ? rule.pins.of_value() : rule.pins;  // no op makes a source
    if (p.empty() || !matches(g.name(v))) continue;
    found = true;
    edit.add_pins(v, p);
  }
  if (!found) refuse("no op or value matches \"" + rule.pattern + "\"");
}

/// A graph with pins beside those that it has. Throws neap::error as add_pins() does.
template <class G>
G pinned(G g, std::span<pin_rule const> rules) {
  if (rules.empty()) return g;
  graph_editor edit(std::move(g));
  for (auto const& r : rules) add_pins(edit, r);
  return G(std::move(edit).finish());
}
template <class G>
G pinned(G g, pin_rules const& rules) {
  return pinned(std::move(g), std::span<pin_rule const>(rules));
}

}  // namespace neap::inline v0
