// neap-graph, version 1: a training step exported from PyTorch (or anything else that writes the format). Operators are
// taken as opaque: types, aliasing, cost, and where that is known how they may be cut (import/aten_links.hpp) and which
// operator of neap's computes the same (import/known_operators.hpp); buffers are storages, tensors are values, and the
// file's order is kept. A node that mutates a tensor gives it a new value: later nodes read that one. What a node says
// besides (args, kwargs) becomes the op's details: nodes that differ there compute different things.
//
// A buffer of kind "temp" is memory of the step: nodes that mutate a tensor on it may run again with the node that makes
// it. Other tensors on the buffer show what was written; reading one of them later is a view of the newest. Several nodes
// may each make a tensor on one temp buffer without reading it, if no two write the same bytes: parts of one whole, as in
// a concatenation without a copy. A tensor that covers several parts needs no node of its own; it is read once the parts
// are there.
// An input with  "donated": true  is dead after its last use: nodes may mutate it, and other values take its place.
//
// Pins (ir/pins.hpp): a node, or a row of "tensors", may have  "pins": ["keep", "run_again", "run_once", "never_in_parts",
// "never_out"]  or some of these. Those of a node count for what it makes, those of a tensor for the node that makes it, too.
// An unknown pin is an error, as are pins that exclude each other and a tensor that no node makes and is pinned run_...
#pragma once

#include <neap/import/aten_links.hpp>
#include <neap/import/byte_runs.hpp>
#include <neap/import/element_types.hpp>
#include <neap/import/imported.hpp>
#include <neap/import/json.hpp>
#include <neap/import/known_operators.hpp>
#include <neap/ir/editor.hpp>

#include <string>

namespace neap { inline namespace v0 { namespace io {

struct neap_graph_options {
  bool optimizer = false;  // also the update nodes of the optional "optimizer" part
  // With these: gradients that they read are not kept for other ops, so that one is there no longer than until its weight
  // is updated, and updates may come early.
  bool gradients_used_up = false;
  // In the form in which the whole step, gradients and all, can be cut into parts of the batch:
  //   - a mean nll_loss_forward becomes two ops: the total weight, which targets alone make, and the loss by it, which is
  //     a sum over rows;
  //   - a mean mse_loss_backward has its divisor as an attribute, since a part has fewer elements;
  //   - integers and truth values that are made of nothing else (targets, positions) are never cut: they are small, and
  //     the total weight needs all targets;
  //   - new_zeros does not read the tensor that it is named after.
  bool for_parts = false;
};

namespace detail {

dtype dtype_of(json_place const& j);

/// The layout that a row of "tensors" says.
tensor_layout layout_in(json_place const& j);

/// The member "pins" of a node or tensor; none if it lacks it.
pin_set pins_in(json_place const& j);
/// Pins an op or value as the file says at `j`, which is named where that cannot be.
template <class Id>
void add_pins_at(json_place const& j, graph_editor& edit, Id to, pin_set pins) {
  if (pins.empty()) return;
  try {
    edit.add_pins(to, pins);
  } catch (error const& e) { j["pins"].fail(e.what()); }
}

}  // namespace detail

/// Reads a document in the format; `file` names it in messages.
result<imported_graph> read_neap_graph(nlohmann::json const& document, std::string const& file,
                                       neap_graph_options options = {});

}}}  // namespace neap::v0::io

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/import/impl/neap_graph.ipp>
#endif
