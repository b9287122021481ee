// The operators of a recorded call in program order, as plain records in a few arrays. A graph is built from them when the
// call has ended, so that recording adds little to what an operator costs.
//
// A log has sections, one for each graph. Values are numbered through all sections; the first value of a section is value
// 0 of its graph.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/id.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class operator_log {
 public:
  static constexpr std::uint32_t none = no_id;

  /// Another section: the records that follow are of another graph.
  void begin_section() {
    sections_.push_back({step_count(), value_count()});
    other_kinds_.clear();
  }
  /// A value that no operator makes, dense, in a storage of its own. `name` is a literal.
  std::uint32_t add_source(role r, std::uint32_t layout, char const* name) {
    steps_.push_back({nullptr, static_cast<std::uint32_t>(sources_.size()), 0, value_count(), 0, 1, {}});
    sources_.push_back({r, name});
    return add_value(layout);
  }
  /// An operator with the outputs of its shape rule; the number of its first output. Throws neap::error if
  /// another operator of its name is in the section.
  std::uint32_t add(operator_view op, std::span<std::uint32_t const> in, std::span<output_rule const> out,
                    std::source_location at) {
    if (in.size() > max_values || out.size() > max_values) throw_error({"graph: an op of more than 32767 values"});
    check_kind(op.facets);
    auto const first = value_count();
    auto const attributes = static_cast<std::uint32_t>(attributes_.size());
    if (auto const size = op.facets->size) {
      attributes_.append(static_cast<std::byte const*>(op.bytes), size);
      attributes_.resize((attributes_.size() + alignment - 1) / alignment * alignment);
    }
    steps_.push_back({op.facets, attributes, static_cast<std::uint32_t>(inputs_.size()), first,
                      static_cast<std::uint16_t>(in.size()), static_cast<std::uint16_t>(out.size()), at});
    for (auto v : in) inputs_.push_back(v);
    auto likely = in.empty() ? none : values_[in.front()];
    for (auto const& o : out) add_value(likely = layout_number(o.layout, likely));
    return first;
  }
  template <class Op>
  std::uint32_t add(Op const& op, std::span<std::uint32_t const> in, output_rule const& out, std::source_location at) {
    return add(view_of(op), in, span_of(&out, 1), at);
  }

  /// The number of a layout. One layout may have several.
  std::uint32_t layout_number(tensor_layout const& l, std::uint32_t likely = none) {
    if (likely != none && layouts_[likely] == l) return likely;
    auto const n = layouts_.size();
    for (auto k = n; k-- > (n > 8 ? n - 8 : 0);)
      if (layouts_[k] == l) return static_cast<std::uint32_t>(k);
    layouts_.push_back(l);
    return static_cast<std::uint32_t>(n);
  }
  tensor_layout const& layout(std::uint32_t number) const { return layouts_[number]; }
  std::uint32_t layout_of(std::uint32_t value) const { return values_[value]; }
  std::uint32_t value_count() const { return static_cast<std::uint32_t>(values_.size()); }
  std::uint32_t step_count() const { return static_cast<std::uint32_t>(steps_.size()); }
  /// Value `value` of the log in the graph of its section.
  value_id in_section(std::uint32_t section, std::uint32_t value) const {
    return value_id{value - sections_[section].first_value};
  }

  /// Adds the sources and operators of a section to an empty graph, and to `places` the line of each op. Throws neap::error
  /// with that line where the graph refuses an operator.
  void build(std::uint32_t section, graph_editor& to, std::vector<std::source_location>& places) const {
    auto const first = sections_[section];
    auto const end = section + std::size_t{1} < sections_.size() ? sections_[section + 1].first_step : step_count();
    plain_vector<value_id> in;
    for (auto k = first.first_step; k < end; ++k) {
      auto const& s = steps_[k];
      if (!s.facets) {
        auto const& from = sources_[s.attributes];
        to.add_source_at(from.role, layouts_[values_[s.first_value]], from.name);
        continue;
      }
      in.clear();
      for (std::uint32_t i = 0; i < s.input_count; ++i) in.push_back(in_section(section, inputs_[s.first_input + i]));
      try {
        auto const made =
            to.emit({s.facets, s.facets->size ? attributes_.data() + s.attributes : no_attributes}, span_of(in));
        bool same = made.size() == s.output_count;
        for (std::uint32_t j = 0; same && j < s.output_count; ++j)
          same = made[j] == in_section(section, s.first_value + j) &&
                 to.graph().layout(made[j]) == layouts_[values_[s.first_value + j]];
        if (!same) throw_error({"compile: ", s.facets->name, " has another layout in the graph"});
      } catch (error const& e) { throw_error(s.at, {e.what()}); }
      places.push_back(s.at);
    }
  }

  /// Forgets all records, and keeps the memory.
  void clear() {
    steps_.clear(), sources_.clear(), inputs_.clear(), values_.clear();
    layouts_.clear(), attributes_.clear(), sections_.clear(), other_kinds_.clear();
  }
  /// How much the records take.
  std::size_t bytes() const {
    return steps_.size() * sizeof(step) + (inputs_.size() + values_.size()) * sizeof(std::uint32_t) +
           layouts_.size() * sizeof(tensor_layout) + attributes_.size();
  }

 private:
  static constexpr std::size_t alignment = 16, max_values = 0x7fff;
  alignas(alignment) static constexpr std::byte no_attributes[alignment]{};
  struct step {
    operator_facets const* facets;  // null: a source
    std::uint32_t attributes;       // where they begin, or which source
    std::uint32_t first_input, first_value;
    std::uint16_t input_count, output_count;
    std::source_location at;
  };
  struct source {
    neap::role role;
    char const* name;
  };
  struct section_begin {
    std::uint32_t first_step, first_value;
  };

  std::uint32_t add_value(std::uint32_t layout) {
    values_.push_back(layout);
    return value_count() - 1;
  }
  /// Throws what the graph would throw. An operator of the table has its row there; others are few.
  void check_kind(operator_facets const* f) {
    auto const known = table_of<standard_operators>();
    auto const row = static_cast<std::size_t>(f->standard_row);  // far beyond the end where it is -1
    if (row < known.size() && known[row] == f) return;
    if (find_kind(span_of(other_kinds_), f) < 0) add_kind(known, f);
  }
  void add_kind(operator_table known, operator_facets const* f) {
    if (find_kind(known, f) >= 0) return;
    auto const has_name = [&](operator_facets const* other) { return other->name == f->name; };
    if (std::ranges::any_of(known, has_name) || std::ranges::any_of(other_kinds_, has_name))
      throw_error({f->name, ": another operator in the graph has this name"});
    other_kinds_.push_back(f);
  }

  plain_vector<step> steps_;
  plain_vector<source> sources_;
  plain_vector<std::uint32_t> inputs_, values_;  // values of all operators; the layout of each value
  plain_vector<tensor_layout> layouts_;
  plain_vector<std::byte> attributes_;
  plain_vector<section_begin> sections_;
  plain_vector<operator_facets const*> other_kinds_;  // of the last section, that no table has
};

}}}  // namespace neap::v0::detail
