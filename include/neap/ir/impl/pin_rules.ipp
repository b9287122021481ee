// The bodies of <neap/ir/pin_rules.hpp>.
#pragma once

#include <neap/ir/pin_rules.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC void add_pins(graph_editor& edit, pin_rule const& rule) {
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

}}  // namespace neap::v0
