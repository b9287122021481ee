// Pins by name or id: which ops and values of a graph are pinned, said apart from the graph.
//
//   auto const g = neap::pinned(step.program, {{neap::pin::run_once, "*.allreduce"}, {neap::pin::keep, op}});
//
// A pattern is a glob (* stands for any characters). It matches the names of ops and values; of an op also the name of its
// operator, which is what a file calls it: "aten.convolution.default", "c10d.*".
#pragma once

#include <neap/core/glob.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/editor.hpp>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

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
void add_pins(graph_editor& edit, pin_rule const& rule);

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
  return pinned(std::move(g), span_of(rules));
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/pin_rules.ipp>
#endif
