// The third graph of rkgb: each node is one real computation with all that hangs on it. What costs next to nothing is
// folded by named steps, in this order or one by one:
//
//   sources   views of weights, inputs and other sources: they are always there (the prologue)
//   lists     views with several results, like split and unbind: into the node whose result they take apart
//   sizes     a few whole numbers made of a tensor: into the node that makes the tensor
//   small     what depends on no other node and no weight, up to options.small_bytes: made once, at the start
//   random    draws of that kind: drawn once, at the start
//   views     every other view: into the node whose result it looks at
//   updates   updates in place: into the last node that they wait for, the reader of what they overwrite or its maker
//   late      nodes that depend on no input of the program (made of weights alone) move to just before their first reader
//
// What depends on nothing goes to the prologue, which rkgb calls the init node: no edges lead from it, so that a mask
// which every layer reads does not tie the layers together. A node that is folded goes where the last of those that it
// waits for is, so the list of nodes is topological after every step.
#pragma once

#include <neap/blocks/dataflow_program.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

enum class simplify_step : std::uint8_t { sources, lists, sizes, small, random, views, updates, late };
inline constexpr std::array simplify_steps{simplify_step::sources, simplify_step::lists,  simplify_step::sizes,
                                           simplify_step::small,   simplify_step::random, simplify_step::views,
                                           simplify_step::updates, simplify_step::late};
constexpr std::string_view name_of(simplify_step s) {
  constexpr std::string_view names[] = {"sources", "lists", "sizes", "small", "random", "views", "updates", "late"};
  return names[static_cast<std::size_t>(s)];
}

struct simplify_options {
  bytes_t small_bytes = 1 << 20;  // most that the results of a small node take
};

struct simplified_node {
  op_id main;              // the real computation
  std::vector<op_id> ops;  // it and what was folded into it, in the order of the program
  bool weighted = false, trained = false, anchored = false, random = false;  // of any of them (dataflow_node)
  friend bool operator==(simplified_node const&, simplified_node const&) = default;
};

/// What node `to` reads of node `from`; no values: it must only wait for it.
struct simplified_edge {
  std::uint32_t from, to;
  std::vector<value_id> values;  // ascending
  friend bool operator==(simplified_edge const&, simplified_edge const&) = default;
};

struct simplified_program {
  static constexpr std::uint32_t prologue_node = no_id - 1;

  std::vector<op_id> prologue;          // in the order of the program
  std::vector<simplified_node> nodes;   // topological
  table<op_id, std::uint32_t> node_of;  // prologue_node, or no_id for what is not forward
  std::vector<simplified_edge> edges;   // by `to`, then by `from`
  std::vector<simplify_step> done;      // in the order in which they were applied

  bool has_done(simplify_step s) const { return std::find(done.begin(), done.end(), s) != done.end(); }
  friend bool operator==(simplified_program const&, simplified_program const&) = default;
};

/// Each forward operation a node of its own: where the steps start.
simplified_program unfolded(op_graph const& g, dataflow_program const& d);

/// One step applied. O(ops + edges).
simplified_program simplify(op_graph const& g, dataflow_program const& d, simplified_program p, simplify_step step,
                            simplify_options const& options = {});

/// All steps, in their order.
simplified_program simplify(op_graph const& g, dataflow_program const& d, simplify_options const& options = {});

std::string to_text(op_graph const& g, simplified_program const& p);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/simplified_program.ipp>
#endif
