// The bodies of <neap/model/op_names.hpp>.
#pragma once

#include <neap/model/op_names.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void op_names::set_module(void const* object, void const* type, std::string const& path) {
  known_ = true;
  if (!modules_.try_emplace({object, type}, path).second) return;
  for (auto p = parent(path); !p.empty() && composites_.insert(p).second;) p = parent(p);
}

NEAP_FUNC void op_names::enter_module(void const* object, void const* type) {
  auto const known = modules_.find({object, type});
  auto const around = scopes_[current_].path;
  enter({known == modules_.end() ? around : known->second, current_, false});
}

NEAP_FUNC void op_names::enter_name(std::string const& name) { enter({name, current_, true}); }

NEAP_FUNC void op_names::name(graph_editor& edit, std::size_t first) {
  if (!known_) return;
  for (auto i = first; i < edit.graph().op_count(); ++i) {
    op_id const o = id_at<op_id>(i);
    if (!edit.graph().name(o).empty()) continue;
    if (ops_.size() <= i) ops_.resize(i + 1);
    ops_[i] = place(edit.graph(), o);
    edit.set_name(o, unique(join(ops_[i].path, edit.graph().facets(o).name)));
  }
}

NEAP_FUNC void op_names::finish(graph_editor& edit) {
  if (!known_) return;
  std::unordered_set<std::string> seen;
  for (auto o : edit.graph().ops()) {
    std::string text(edit.graph().name(o));
    bool const made = text.empty();
    if (made) text = join(place(edit.graph(), o).path, edit.graph().facets(o).name);
    auto const before = text;
    for (auto& next = next_[before]; !seen.insert(text).second;) text = before + "_" + std::to_string(++next);
    if (made || text != before) edit.set_name(o, text);
  }
}

NEAP_FUNC op_names::named_op op_names::place(op_graph const& g, op_id o) const {
  auto const& s = scopes_[current_];
  named_op made{s.path, current_, false, false};
  if (s.exact) return made;
  bool others = false;
  std::string of_weight, path;
  for (auto v : g.inputs(o)) {
    if (!weight_of(g, v, path)) others = true;
    else if (within(path, s.path) && (!made.by_weight || of_weight.size() < path.size()))
      of_weight = path, made.by_weight = true;
  }
  if (made.by_weight) {
    made.path = of_weight;
    made.weight_alone = !others;
    return made;
  }
  op_id latest = nothing<op_id>;
  for (auto v : g.inputs(o)) {
    auto const p = g.producer(v);
    if (p == nothing<op_id> || index(p) >= ops_.size() || !is_in_current(index(p))) continue;
    if (latest == nothing<op_id> || index(p) > index(latest)) latest = p;
  }
  if (latest == nothing<op_id>) return made;
  auto const& from = ops_[index(latest)];
  std::string found = from.path;
  if (from.scope != current_) {
    auto child = from.scope;
    while (scopes_[child].around != current_) child = scopes_[child].around;
    if (scopes_[child].exact) return made;
    found = scopes_[child].path == s.path ? s.path : parent(scopes_[child].path);
  } else if (from.by_weight && !composites_.contains(found)) {
    found = found == s.path ? found : parent(found);
  }
  if (within(found, s.path)) made.path = found;
  return made;
}

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::string op_names::parent(std::string const& path) {
  auto const dot = path.rfind('.');
  return dot == path.npos ? std::string() : path.substr(0, dot);
}

NEAP_FUNC std::string op_names::join(std::string const& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

NEAP_FUNC bool op_names::within(std::string const& path, std::string const& around) {
  return around.empty() || path == around ||
         (path.starts_with(around) && path.size() > around.size() && path[around.size()] == '.');
}

NEAP_FUNC void op_names::enter(scope_of_ops s) {
  scopes_.push_back(std::move(s));
  current_ = static_cast<std::uint32_t>(scopes_.size() - 1);
}

NEAP_FUNC std::string op_names::unique(std::string const& text) {
  auto& next = next_[text];
  if (next++ == 0) return text;
  return text + "_" + std::to_string(next - 1);
}

NEAP_FUNC bool op_names::weight_of(op_graph const& g, value_id v, std::string& path) const {
  auto const p = g.producer(v);
  if (p == nothing<op_id>) {
    auto const r = g.role(v);
    auto const name = g.name(g.record(g.storage(v)).first);
    if ((r != role::weight && r != role::buffer) || name.empty()) return false;
    path = parent(std::string(name));
    return true;
  }
  if (index(p) >= ops_.size() || !ops_[index(p)].weight_alone) return false;
  path = ops_[index(p)].path;
  return true;
}

NEAP_FUNC bool op_names::is_in_current(std::size_t op) const {
  for (auto s = ops_[op].scope; s != no_scope; s = scopes_[s].around) {
    if (s == current_) return true;
    if (s == 0) return false;
  }
  return false;
}

}}}  // namespace neap::v0::detail
