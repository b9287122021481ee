// All graphs of a program in one call, each built from the one before:
//
//   basic -> data-flow -> simplified -> blocks (with their classes)
//                               \-----> kernels
//
//   auto const all = neap::make_all_graphs(step.program);
//   std::puts(to_text(step.program, all.simplified).c_str());
//
// The program may be a forward program, a training step that was traced, or one that was imported: operators need not be
// known, their declared types, aliases and readers are enough.
#pragma once

#include <neap/blocks/block_chain.hpp>
#include <neap/blocks/block_classes.hpp>
#include <neap/blocks/block_facts.hpp>
#include <neap/blocks/kernel_graph.hpp>

#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// How the simplified program is cut (blocks/cut.hpp).
enum class cut_kind : std::uint8_t { automatic, separators, repeats, bottom_up };

struct block_options {
  simplify_options simplify{};
  cut_options cut{};
  cut_kind kind = cut_kind::automatic;
};

struct all_graphs {
  basic_program basic;
  dataflow_program dataflow;
  simplified_program simplified;
  backward_nodes backward;  // which node of the simplified program each op behind the forward part belongs to
  block_chain blocks;
  std::vector<block_class> classes;
  kernel_graph kernels;
};

/// `order`: an order in which the program can run. Throws neap::error for one that is not, and for programs with parts.
inline all_graphs make_all_graphs(op_graph const& g, schedule order, block_options const& options = {}) {
  all_graphs a;
  a.basic = make_basic(g, std::move(order));
  a.dataflow = make_dataflow(g, a.basic);
  a.simplified = simplify(g, a.dataflow, options.simplify);
  a.backward = find_backward(g, a.basic, a.simplified);
  auto const& p = a.simplified;
  auto const ends = options.kind == cut_kind::separators  ? cut_at_separators(p)
                    : options.kind == cut_kind::repeats   ? cut_at_repeats(g, p, options.cut)
                    : options.kind == cut_kind::bottom_up ? cut_bottom_up(g, p, options.cut)
                                                          : cut_blocks(g, p, options.cut);
  a.blocks = make_chain(g, a.basic, p, a.backward, ends);
  a.classes = classify(g, a.blocks);
  a.kernels = make_kernels(g, a.basic, p, a.backward);
  return a;
}
/// In the order of the ids, as far as the edges allow.
inline all_graphs make_all_graphs(op_graph const& g, block_options const& options = {}) {
  return make_all_graphs(g, schedule{topological_order(g)}, options);
}

/// A line a block: its class, its ops, what crosses.
inline std::string to_text(op_graph const& g, block_chain const& c) {
  std::string s;
  auto const list = [&](char const* what, std::vector<value_id> const& values) {
    if (values.empty()) return;
    s += std::string("; ") + what;
    for (auto v : values) s += " " + detail::value_text(g, v);
  };
  if (!c.prologue.empty()) s += "prologue: " + std::to_string(c.prologue.size()) + " ops\n";
  for (std::uint32_t k = 0; k < c.blocks.size(); ++k) {
    auto const& b = c.blocks[k];
    s += "block " + std::to_string(k) + " of class " + std::to_string(b.block_class) + ": " +
         std::to_string(b.forward.size()) + " forward, " + std::to_string(b.backward.size()) + " backward, " +
         std::to_string(b.updates.size()) + " updates";
    list("reads", b.inputs), list("makes", b.outputs), list("globals", b.globals);
    list("gradients read", b.gradient_inputs), list("gradients made", b.gradient_outputs), list("saved", b.saved);
    s += "\n";
  }
  if (!c.epilogue.empty()) s += "epilogue: " + std::to_string(c.epilogue.size()) + " ops\n";
  return s;
}

}}  // namespace neap::v0
