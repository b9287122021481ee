// What passes share that write a program anew: the sources first, then op by op, changed or not, and what is kept.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/editor.hpp>

#include <span>

namespace neap { inline namespace v0 { namespace detail {

class program_copy {
 public:
  /// Starts a copy of `g`, with its sources. `g` outlives it.
  explicit program_copy(op_graph const& g);

  /// Op o as `what` with these inputs of the copy; its outputs have the layouts and aliases that they had. `shift`: how
  /// many inputs more there are in front of those from number 2 on.
  void put(op_id o, operator_view what, std::span<value_id const> inputs, int shift = 0);
  /// Likewise, its outputs being those of these values: what several ops had, of which o is one.
  void put(op_id o, operator_view what, std::span<value_id const> inputs, std::span<value_id const> outputs,
           int shift = 0);
  /// Value `now` of the copy has the place, the name, the role and the pins of v.
  void stands_for(value_id v, value_id now);
  /// Keeps what was kept; the copy.
  op_graph finish();

  graph_editor edit;
  table<value_id, value_id> value;  // of the graph that was given -> of the copy; nothing<value_id>: not in it

 private:
  op_graph const& g_;
  plain_vector<output_rule> rules_;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/program_copy.ipp>
#endif
