// The bodies of <neap/train/program_copy.hpp>.
#pragma once

#include <neap/train/program_copy.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC program_copy::program_copy(op_graph const& g)
    : edit(g.facet_table()),
      value(g.value_count(), nothing<value_id>),
      g_(g) {
  for (auto v : g.sources()) {
    auto const& r = g.record(v);
    auto const s = g.record(r.storage).first;
    value[v] = r.alias == alias_kind::fresh ? edit.add_source_at(r.role, g.layout(v), g.name(v), g.bytes(r.storage))
                                            : edit.add_source_view(value[s], g.layout(v), g.name(v));
    if (!r.pins.empty()) edit.add_pins(value[v], r.pins);
  }
}

NEAP_FUNC void program_copy::put(op_id o, operator_view what, std::span<value_id const> inputs, int shift) {
  plain_vector<value_id> outputs;
  for (auto v : g_.outputs(o)) outputs.push_back(v);
  put(o, what, inputs, span_of(outputs), shift);
}

NEAP_FUNC void program_copy::put(op_id o, operator_view what, std::span<value_id const> inputs,
                                 std::span<value_id const> outputs, int shift) {
  rules_.clear();
  for (auto v : outputs) {
    auto const& r = g_.record(v);
    rules_.push_back({g_.layout(v), r.alias, r.of >= 2 ? r.of + shift : r.of, g_.bytes(r.storage)});
  }
  auto const to = edit.add_given(what, inputs, span_of(rules_), g_.target(o), g_.details(o));
  for (std::size_t j = 0; j < rules_.size(); ++j) stands_for(outputs[j], edit.output(to, static_cast<int>(j)));
  edit.set_name(to, g_.name(o));
  if (auto const pins = g_.pins(o).of_op(); !pins.empty()) edit.add_pins(to, pins);
}

NEAP_FUNC op_graph program_copy::finish() {
  for (auto v : g_.kept()) edit.keep(value[v], g_.role(v));
  return std::move(edit).finish();
}

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void program_copy::stands_for(value_id v, value_id now) {
  value[v] = now;
  edit.set_name(now, g_.name(v));
  edit.set_role(now, g_.role(v));
  if (!g_.pins(v).empty()) edit.add_pins(now, g_.pins(v));
}

}}}  // namespace neap::v0::detail
