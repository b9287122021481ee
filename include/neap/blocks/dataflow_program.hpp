// The second graph of rkgb: the forward operations with what operators declare of them, where rkgb runs each one to find
// it out: types, whether a result is a view or an update in place, which op made the memory it lies in, whether draws are
// random, and through which values gradients flow.
#pragma once

#include <neap/blocks/basic_program.hpp>

#include <string>
#include <vector>

namespace neap { inline namespace v0 {

struct dataflow_node {
  op_id op;
  bool is_view = false;         // all results look at memory that is there: nothing is computed
  bool is_update = false;       // writes memory that is there
  bool is_random = false;       // draws; a copy draws the same, by the key among its attributes
  bool is_recomputable = true;  // may run again with the same result
  bool weighted = false;        // depends on a weight
  bool trained = false;         // on the way from a weight to the loss, by floating values
  bool anchored = false;        // depends on an input of the program
  bytes_t bytes = 0;            // of the memory that it makes
  bytes_t workspace = 0;
  std::vector<op_id> data;   // forward ops whose results it reads, each once, ascending in the order of the program
  std::vector<op_id> order;  // forward ops that must have run before it, beyond those: readers of what it overwrites
  friend bool operator==(dataflow_node const&, dataflow_node const&) = default;
};

struct dataflow_program {
  std::vector<dataflow_node> nodes;     // the forward part, in the order of the program
  table<op_id, std::uint32_t> node_of;  // no_id: not forward
  table<value_id, op_id> owner;         // which op made the memory that a value lies in; nothing<op_id>: it was there
  table<value_id, value_id> parent;     // what a view or an update was made of; nothing<value_id>: it is neither
  dataflow_node const& operator[](op_id o) const { return nodes[node_of[o]]; }
  bool is_forward(op_id o) const { return node_of[o] != no_id; }
  friend bool operator==(dataflow_program const&, dataflow_program const&) = default;
};

namespace detail {
bool is_random(op_graph const& g, op_id o);
}  // namespace detail

/// O(ops + edges).
dataflow_program make_dataflow(op_graph const& g, basic_program const& b);

std::string to_text(op_graph const& g, dataflow_program const& p);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/dataflow_program.ipp>
#endif
