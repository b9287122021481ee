// What passes share that write a program anew: the sources first, then op by op, changed or not, and what is kept.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/editor.hpp>

#include <span>

namespace neap::inline v0::detail {

class program_copy {
 public:
  /// Starts a copy of `g`, with its sources. `g` outlives it.
  NEAP_ONCE explicit program_copy(op_graph const& g)
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

  /// Op o as `what` with these inputs of the copy; its outputs have the layouts and aliases that they had. `shift`: how
  /// many inputs more there are in front of those from number 2 on.
  NEAP_ONCE void put(op_id o, operator_view what, std::span<value_id const> inputs, int shift = 0) {
    plain_vector<value_id> outputs;
    for (auto v : g_.outputs(o)) outputs.push_back(v);
    put(o, what, inputs, span_of(outputs), shift);
  }
  /// Likewise, its outputs being those of these values: what several ops had, of which o is one.
  NEAP_ONCE void put(op_id o, operator_view what, std::span<value_id const> inputs, std::span<value_id const> outputs,
                     int shift = 0) {
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
  /// Value `now` of the copy has the place, the name, the role and the pins of v.
  void stands_for(value_id v, value_id now) {
    value[v] = now;
    edit.set_name(now, g_.name(v));
    edit.set_role(now, g_.role(v));
    if (!g_.pins(v).empty()) edit.add_pins(now, g_.pins(v));
  }
  /// Keeps what was kept; the copy.
  NEAP_ONCE op_graph finish() {
    for (auto v : g_.kept()) edit.keep(value[v], g_.role(v));
    return std::move(edit).finish();
  }

  graph_editor edit;
  table<value_id, value_id> value;  // of the graph that was given -> of the copy; nothing<value_id>: not in it

 private:
  op_graph const& g_;
  plain_vector<output_rule> rules_;
};

}  // namespace neap::inline v0::detail
