// The first graph of rkgb: the list of operations as they were traced, one assignment a line, with the part of the step
// that each belongs to. All graphs of this layer are plain values that name ops and values of one program by their ids;
// none holds the program, which is handed in where one is made or printed.
#pragma once

#include <neap/blocks/program_text.hpp>
#include <neap/core/error.hpp>
#include <neap/ir/traversal.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/plan/step_parts.hpp>

#include <span>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

struct basic_program {
  schedule order;                // all ops, each after all that must run before it
  table<op_id, step_part> part;  // what each does in the step; all forward in a program without gradients
  std::size_t count(step_part p) const {
    std::size_t n = 0;
    for (auto x : part) n += x == p;
    return n;
  }
  friend bool operator==(basic_program const&, basic_program const&) = default;
};

/// Whether an op makes a loss or an output that is kept: what separates forward from backward.
inline bool has_forward_end(op_graph const& g) {
  for (auto v : g.kept())
    if (auto const r = g.role(v); g.producer(v) != nothing<op_id> && (r == role::loss || r == role::output))
      return true;
  return false;
}
/// Whether gradients are kept, or anything is updated.
inline bool has_backward_end(op_graph const& g) {
  for (auto v : g.kept())
    if (g.role(v) == role::gradient) return true;
  return g.has_updates();
}

/// `order`: the order of the trace or of the file. Throws neap::error if it is not an order in which the ops can run, if
/// the graph has parts, or if it keeps neither a loss nor an output: then nothing separates forward from backward.
/// O(ops + edges).
inline basic_program make_basic(op_graph const& g, schedule order) {
  if (!is_topological(g, order.order)) throw error("blocks: the order is not one in which the program can run");
  if (!g.parts().empty()) throw error("blocks: the program has parts");
  basic_program p;
  p.part = parts_of(g, order);
  p.order = std::move(order);
  if (p.order.size() > 0 && p.count(step_part::forward) == 0)
    throw error(
        "blocks: the program keeps neither a loss nor an output, so that forward and backward cannot be distinguished");
  return p;
}
/// In the order of the ids, as far as the edges allow.
inline basic_program make_basic(op_graph const& g) { return make_basic(g, schedule{topological_order(g)}); }

/// The lines of a part, or of all parts one after the other.
inline std::string to_text(op_graph const& g, basic_program const& p) {
  std::string s;
  for (auto part : {step_part::forward, step_part::backward, step_part::update}) {
    if (p.count(part) == 0) continue;
    s += "# " + std::string(name_of(part)) + "\n";
    for (auto o : p.order)
      if (p.part[o] == part) s += detail::assignment_text(g, o) + "\n";
  }
  return s;
}

}}  // namespace neap::v0
