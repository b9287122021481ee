// How the graphs of this layer are printed: a line an op, as a person would write it.
#pragma once

#include <neap/ir/graph.hpp>
#include <neap/ir/operators/element_steps.hpp>

#include <charconv>
#include <string>
#include <string_view>

namespace neap { inline namespace v0 { namespace detail {

/// "w.0" for a source with a name, "input.3" for one without, "x12" for what an op makes.
inline std::string value_text(op_graph const& g, value_id v) {
  if (g.producer(v) != nothing<op_id>) return "x" + std::to_string(index(v));
  if (!g.name(v).empty()) return std::string(g.name(v));
  return std::string(name_of(g.role(v))) + "." + std::to_string(index(v));
}

inline std::string attribute_text(attribute_value const& a) {
  if (auto const* x = std::get_if<bool>(&a)) return *x ? "true" : "false";
  if (auto const* x = std::get_if<std::int64_t>(&a)) return std::to_string(*x);
  if (auto const* x = std::get_if<double>(&a)) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, *x).ptr};
  }
  if (auto const* x = std::get_if<dtype>(&a)) return std::string(name_of(*x));
  if (auto const* x = std::get_if<element_program>(&a)) return to_string(*x);
  return to_string(std::get<extents>(a));
}

inline std::string operator_text(op_graph const& g, op_id o) {
  auto const target = g.target(o);
  return std::string(target.empty() ? g.facets(o).name : target);
}

/// "x12, x13 = layer_norm(x9, gamma, beta; epsilon=1e-05)". Costs that an opaque op carries are not written.
inline std::string assignment_text(op_graph const& g, op_id o) {
  std::string s;
  for (auto v : g.outputs(o)) s += (s.empty() ? "" : ", ") + value_text(g, v);
  s += (s.empty() ? "" : " = ") + operator_text(g, o) + "(";
  std::string_view between;
  for (auto v : g.inputs(o)) s += std::string(between) + value_text(g, v), between = ", ";
  if (!g.as<op::opaque>(o)) {
    between = "; ";
    for (auto const& f : g.facets(o).attributes) {
      s += std::string(between) + std::string(f.name) + "=" + attribute_text(f.get(g.attributes(o)));
      between = ", ";
    }
  } else if (!g.details(o).empty()) {
    s += "; " + std::string(g.details(o));
  }
  return s + ")";
}

/// "f32[4,8] 128 B".
inline std::string type_text(op_graph const& g, value_id v) {
  return to_string(g.type(v)) + " " + std::to_string(g.type(v).bytes()) + " B";
}

}}}  // namespace neap::v0::detail
