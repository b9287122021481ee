// Random training-like graphs over the standard operator set as importers make them: opaque ops with several outputs,
// views, updates in place, random draws, and given latencies. For what reads and writes graphs and plans.
#pragma once

#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace neap::testing {

/// Deterministic by seed; `ops` forward ops, about as many backward ones. Op ids are a valid order.
inline graph opaque_graph(std::uint64_t seed, std::size_t ops = 12) {
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  auto const below = [&](std::uint64_t n) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 11) % n;
  };
  graph_editor edit{operator_table(standard_operators::facets)};
  std::int64_t const extents_of[] = {8, 32, 64, 100};
  auto const layout = [&] {
    return tensor_layout::dense({below(4) ? dtype::f32 : dtype::bf16, {extents_of[below(4)], 16}});
  };
  std::vector<value_id> weights, forward;
  for (std::size_t i = 0; i < 3; ++i)
    weights.push_back(edit.add_source_at(role::weight, layout(), "w" + std::to_string(i), 16384));
  forward.push_back(edit.add_source_at(role::input, layout(), "x"));
  edit.add_source_at(role::state, layout(), "unread \"state\"");

  auto const what = [&] {
    op::opaque o;
    o.seconds = 1e-6 * static_cast<double>(1 + below(50));
    o.flops = static_cast<double>(below(1000));
    o.read = static_cast<double>(below(1000));
    return o;
  };
  auto const pick = [&](std::vector<value_id> const& from) {
    return from[from.size() - 1 - below(std::min<std::size_t>(from.size(), 4))];
  };
  for (std::size_t i = 0; i < ops; ++i) {
    auto o = what();
    std::vector<value_id> in{pick(forward)};
    if (below(2)) in.push_back(weights[below(3)]);
    std::vector<output_rule> rules;
    switch (below(6)) {
      case 0: rules = {{edit.layout_of(in[0]), alias_kind::view, 0, -1}}, o.seconds = 0; break;
      case 1: rules = {{layout(), alias_kind::fresh, -1, -1}, {layout(), alias_kind::fresh, -1, 8192}}; break;
      case 2: rules = {{edit.layout_of(in[0]), alias_kind::fresh, -1, -1}}, o.pointwise = true; break;
      case 3: o.rng = true, o.key = static_cast<std::int64_t>(i); [[fallthrough]];
      default: rules = {{layout(), alias_kind::fresh, -1, -1}};
    }
    auto const id = edit.add_opaque("fwd." + std::to_string(below(3)), o, in, rules, "f" + std::to_string(i),
                                    i % 3 ? "{\"args\":[\"%0\"," + std::to_string(i % 4) + "]}" : "");
    for (auto v : edit.outputs_of(id)) forward.push_back(v);
  }
  value_id gradient = forward.back();
  for (std::size_t i = forward.size(); i-- > 1;) {
    std::vector<value_id> const in{gradient, forward[i]};
    output_rule const rules[] = {{layout(), alias_kind::fresh, -1, -1}};
    gradient = edit.output(edit.add_opaque("bwd", what(), in, rules, "b" + std::to_string(i)));
    if (i % 4 == 1 && !weights.empty()) {
      std::vector<value_id> const both{weights.back(), gradient};
      output_rule const update[] = {{edit.layout_of(weights.back()), alias_kind::update, 0, -1}};
      auto u = what();
      u.pure = false;
      edit.add_opaque("update", u, both, update, "u" + std::to_string(i));
      weights.pop_back();
    }
  }
  edit.keep(gradient, role::gradient);
  edit.keep(forward[forward.size() / 2], role::output);
  return graph(std::move(edit).finish());
}

/// Opaque ops one behind another, from an input on; the last one's result is kept.
inline graph opaque_ops(std::size_t count, role kept_as) {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const type = tensor_layout::dense({dtype::f32, {256}});
  output_rule const fresh[] = {{type, alias_kind::fresh, -1, -1}};
  auto x = edit.add_source_at(role::input, type, "x");
  for (std::size_t i = 0; i < count; ++i)
    x = edit.output(edit.add_opaque("f" + std::to_string(i), op::opaque{}, std::vector{x}, fresh));
  edit.keep(x, kept_as);
  return graph(std::move(edit).finish());
}

}  // namespace neap::testing
