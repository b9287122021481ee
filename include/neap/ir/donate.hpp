// Donated inputs: memory that the owner gives up. The planner may free such an input after its last use, put other values
// in its place and let ops write on it; a run leaves nothing of it.
//
//   step.program = neap::donated(std::move(step.program), {"batch.*"});      // before planning
//   found = neap::optimize(step, moves, memory_limit{2_GiB});
//
// A trainer copies a donated part of the batch into its own memory, where the plan has a place for it from the beginning of
// the run; the caller's tensors are never written.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/glob.hpp>
#include <neap/ir/editor.hpp>

#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// The graph, with the inputs donated whose names match one of the patterns, in which * stands for any characters. Throws
/// neap::error for a pattern that matches no input, with the names that there are. O(inputs * patterns + ops + edges).
template <class G>
G donated(G g, std::vector<std::string> const& patterns) {
  if (patterns.empty()) return g;
  graph_editor edit{op_graph(std::move(g))};
  auto const& all = edit.graph();
  std::vector<value_id> inputs;
  std::string names;
  for (auto v : all.sources()) {
    auto const first = all.record(all.storage(v)).first;
    if (all.role(first) != role::input && all.role(first) != role::donated) continue;
    inputs.push_back(v);
    if (v == first && !all.name(v).empty()) names += (names.empty() ? "" : ", ") + std::string(all.name(v));
  }
  for (auto const& p : patterns) {
    bool found = false;
    for (auto v : inputs)
      if (detail::matches(p, all.name(all.record(all.storage(v)).first))) edit.set_role(v, role::donated), found = true;
    if (!found)
      throw_error(
          {"no input matches \"", p, "\"", names.empty() ? ": no input has a name" : "; the inputs are ", names});
  }
  edit.derive_all();
  return G(std::move(edit).finish());
}

}}  // namespace neap::v0
