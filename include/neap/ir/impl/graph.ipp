// The bodies of <neap/ir/graph.hpp>.
#pragma once

#include <neap/ir/graph.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC plain_vector<dim_link> op_graph::links(op_id o) const {
  plain_vector<tensor_layout> layouts;
  layouts.reserve(inputs(o).size() + outputs(o).size());
  for (auto v : inputs(o)) layouts.push_back(layout(v));
  for (auto v : outputs(o)) layouts.push_back(layout(v));
  auto const all = std::span<tensor_layout const>(layouts.data(), layouts.size());
  dim_context c(all.first(inputs(o).size()), all.subspan(inputs(o).size()));
  if (auto const* x = as<op::opaque>(o)) relate_by_text(text(x->links), c);
  else facets(o).relate(attributes(o), c);
  return std::move(c).take();
}

namespace detail {
NEAP_FUNC std::shared_ptr<graph_tables> const& no_tables() {
  static auto const none = std::make_shared<graph_tables>();
  return none;
}
}  // namespace detail

NEAP_FUNC op_graph::op_graph() : t_(detail::no_tables()) {}

NEAP_FUNC op_graph::op_graph(operator_table ops) : t_(std::make_shared<detail::graph_tables>()) {
  t_->kinds = detail::table_from(ops);
}

NEAP_FUNC op_graph::op_graph(op_graph const& other)
    : t_(other.t_->in_edit ? std::make_shared<detail::graph_tables>(*other.t_) : other.t_) {}

NEAP_FUNC op_graph::op_graph(op_graph&& other) noexcept : t_(std::exchange(other.t_, detail::no_tables())) {}

NEAP_FUNC op_graph& op_graph::operator=(op_graph const& other) {
  t_ = op_graph(other).t_;
  return *this;
}

NEAP_FUNC op_graph& op_graph::operator=(op_graph&& other) noexcept {
  std::swap(t_, other.t_);
  return *this;
}

NEAP_FUNC op_graph::~op_graph() = default;

NEAP_FUNC void op_graph::begin_edit() {
  // Where another thread has just dropped the last other copy, what it read comes before what is written here.
  if (t_.use_count() == 1) std::shared_ptr<detail::graph_tables>(t_).reset();
  else t_ = std::make_shared<detail::graph_tables>(*t_);
  t_->in_edit = true;
}

NEAP_FUNC bool operator==(op_graph const& a, op_graph const& b) {
  if (a.t_ == b.t_) return true;
  if (a.t_->kinds.data() != b.t_->kinds.data() || a.t_->digest != b.t_->digest || a.op_count() != b.op_count() ||
      a.value_count() != b.value_count() || a.t_->storages != b.t_->storages || a.t_->kept != b.t_->kept ||
      a.t_->sources != b.t_->sources || a.t_->parts != b.t_->parts)
    return false;
  for (auto o : a.ops()) {
    auto const &r = a.record(o), &s = b.record(o);
    if (r.output_count != s.output_count || (r.output_count && r.first_output != s.first_output) ||
        r.origin != s.origin || r.part != s.part || r.pins != s.pins || a.name(o) != b.name(o) ||
        !std::equal(a.inputs(o).begin(), a.inputs(o).end(), b.inputs(o).begin(), b.inputs(o).end()) ||
        !detail::same_operator(a.view(o), b.view(o)) || a.target(o) != b.target(o) || a.details(o) != b.details(o))
      return false;
  }
  for (auto v : a.values()) {
    auto r = a.record(v), s = b.record(v);
    if (a.name(v) != b.name(v) || !(a.layout(v) == b.layout(v))) return false;
    r.name = s.name, r.layout = s.layout;  // places in tables whose order does not matter
    if (r != s) return false;
  }
  return true;
}

}}  // namespace neap::v0
