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

#include <neap/ir/editor.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class op_names {
 public:
  /// Whether any module or tensor is known: a trace of a plain function has no names.
  bool any() const { return known_; }

  void set_module(void const* object, void const* type, std::string const& path);

  void enter_module(void const* object, void const* type);
  void enter_name(std::string const& name);
  void leave() { current_ = scopes_[current_].around; }

  /// Names the ops from `first` on, which the trace has just added.
  void name(graph_editor& edit, std::size_t first);
  /// At the end: what has no name yet (views that the trace itself has made), and equal names get numbers.
  void finish(graph_editor& edit);

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

  static std::string parent(std::string const& path);
  static std::string join(std::string const& path, std::string_view name);
  static bool within(std::string const& path, std::string const& around);
  void enter(scope_of_ops s);
  std::string unique(std::string const& text);

  /// The module of a weight that the value is, or is made of alone; false if it is none.
  bool weight_of(op_graph const& g, value_id v, std::string& path) const;

  named_op place(op_graph const& g, op_id o) const;
  bool is_in_current(std::size_t op) const;

  bool known_ = false;
  std::map<std::pair<void const*, void const*>, std::string> modules_;
  std::unordered_set<std::string> composites_;  // paths of modules that have modules
  std::vector<scope_of_ops> scopes_{{std::string(), 0, false}};
  std::uint32_t current_ = 0;
  std::vector<named_op> ops_;
  std::unordered_map<std::string, std::size_t> next_;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/op_names.ipp>
#endif
