// The names of traced ops: the path of the module that made them and their operator, "blocks.3.up.matmul"; of several
// equal ones, "blocks.3.up.matmul_1" is the second.
//
// The module of an op is, by the first rule that says one:
//   - the name alone where the step has opened a detail::name_scope (updates: "blocks.3.up.weight")
//   - the module of a weight or buffer that the op reads
//   - the innermost neap::scope: the library's modules, and users' that open one
//   - for modules without a scope: of the latest argument that was made within the same scope, the module around the
//     module that made it ("blocks.3" behind "blocks.3.down"), or its own if that was a plain op
// Gradients (train/differentiate.hpp) are named after the op that they belong to: "blocks.3.up.matmul.grad".
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/ir/editor.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

class op_names {
 public:
  /// Whether any module or tensor is known: a trace of a plain function has no names.
  bool any() const { return known_; }

  NEAP_ONCE void set_module(void const* object, void const* type, std::string const& path) {
    known_ = true;
    if (!modules_.try_emplace({object, type}, path).second) return;
    for (auto p = parent(path); !p.empty() && composites_.insert(p).second;) p = parent(p);
  }

  NEAP_ONCE void enter_module(void const* object, void const* type) {
    auto const known = modules_.find({object, type});
    auto const around = scopes_[current_].path;
    enter({known == modules_.end() ? around : known->second, current_, false});
  }
  NEAP_ONCE void enter_name(std::string const& name) { enter({name, current_, true}); }
  void leave() { current_ = scopes_[current_].around; }

  /// Names the ops from `first` on, which the trace has just added.
  NEAP_ONCE void name(graph_editor& edit, std::size_t first) {
    if (!known_) return;
    for (auto i = first; i < edit.graph().op_count(); ++i) {
      op_id const o = id_at<op_id>(i);
      if (!edit.graph().name(o).empty()) continue;
      if (ops_.size() <= i) ops_.resize(i + 1);
      ops_[i] = place(edit.graph(), o);
      edit.set_name(o, unique(join(ops_[i].path, edit.graph().facets(o).name)));
    }
  }
  /// At the end: what has no name yet (views that the trace itself has made), and equal names get numbers.
  NEAP_ONCE void finish(graph_editor& edit) {
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

 private:
  struct scope_of_ops {
    std::string path;
    std::uint32_t around;
    bool exact;
  };
  struct named_op {
    std::string path;
    std::uint32_t scope = no_scope;
    bool by_weight = false;     // its path is that of a weight
    bool weight_alone = false;  // it reads weights, or what is made of them, and nothing else
  };
  static constexpr std::uint32_t no_scope = UINT32_MAX;

  static std::string parent(std::string const& path) {
    auto const dot = path.rfind('.');
    return dot == path.npos ? std::string() : path.substr(0, dot);
  }
  static std::string join(std::string const& path, std::string_view name) {
    return path.empty() ? std::string(name) : path + "." + std::string(name);
  }
  static bool within(std::string const& path, std::string const& around) {
    return around.empty() || path == around ||
           (path.starts_with(around) && path.size() > around.size() && path[around.size()] == '.');
  }
  void enter(scope_of_ops s) {
    scopes_.push_back(std::move(s));
    current_ = static_cast<std::uint32_t>(scopes_.size() - 1);
  }
  std::string unique(std::string const& text) {
    auto& next = next_[text];
    if (next++ == 0) return text;
    return text + "_" + std::to_string(next - 1);
  }

  /// The module of a weight that the value is, or is made of alone; false if it is none.
  bool weight_of(op_graph const& g, value_id v, std::string& path) const {
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

  NEAP_ONCE named_op place(op_graph const& g, op_id o) const {
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
  bool is_in_current(std::size_t op) const {
    for (auto s = ops_[op].scope; s != no_scope; s = scopes_[s].around) {
      if (s == current_) return true;
      if (s == 0) return false;
    }
    return false;
  }

  bool known_ = false;
  std::map<std::pair<void const*, void const*>, std::string> modules_;
  std::unordered_set<std::string> composites_;  // paths of modules that have modules
  std::vector<scope_of_ops> scopes_{{std::string(), 0, false}};
  std::uint32_t current_ = 0;
  std::vector<named_op> ops_;
  std::unordered_map<std::string, std::size_t> next_;
};

}  // namespace neap::inline v0::detail
