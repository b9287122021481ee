// The dimension graph: which axes of which tensors must be cut together. Its nodes are the axes of values and the
// reduced axes of ops; an operator's relate() joins them. A component is a set of such axes; cutting it into equal parts
// cuts each op in it along one of its own loops: spatially (its outputs are pieces of the whole) or along a reduced axis
// (its outputs are partial results, to be combined), or both at once for different outputs (the gradients of a layer
// norm's input and of its weights). After MAGIS's D-graph (ASPLOS'24), which starts a new component where a join would
// bring two loops of one op together; here the join is made and reported as an obstacle, so that a region that leaves
// out the ops named there can still be cut.
//
// The axes of a component need not have one extent: [B,T,D] -> [B*T,D] joins B with B*T, since a part of equal parts of
// the one is the same part of the other. The number of parts must divide all their extents.
//
//   dimension_graph dims(g);
//   for (auto c : dims.components())
//     if (dims.is_cuttable(c)) for (auto const& m : dims.members(c)) ...
#pragma once

#include <neap/core/csr.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/union_find.hpp>
#include <neap/ir/graph.hpp>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

enum class component_id : std::uint32_t {};

/// One axis of a value.
struct value_axis {
  value_id value;
  std::int32_t axis;
  friend bool operator==(value_axis const&, value_axis const&) = default;
};

enum class participation : std::uint8_t { spatial, reduced };

/// An op that runs on pieces when a component is cut.
struct dim_member {
  op_id op;
  participation how = participation::spatial;  // spatial: some output is a piece of the whole
  combine combined = combine::concat;          // of partial results: the outputs that are no pieces; concat: none are
  friend bool operator==(dim_member const&, dim_member const&) = default;
};

/// Why an op of a component cannot be cut along it, or a value has no single axis in it.
struct dim_obstacle {
  enum kind_type : std::uint8_t {
    two_axes,         // the value has two axes in the component, such as the scores of self-attention
    two_loops,        // the op would be cut spatially along one axis and reduced along another, or combined in two ways
    extents_differ,   // the op relates this value's axis to one whose extent is no multiple nor divisor of its own
    unrelated_input,  // the value has an axis in the component that the op does not relate to any of its loops
    unrelated_output,  // the op is cut, but this output is neither a piece nor a partial result, or others take it for one
  };
  kind_type kind;
  op_id op = nothing<op_id>;  // nothing: two axes of a source
  value_id value = nothing<value_id>;
  friend bool operator==(dim_obstacle const&, dim_obstacle const&) = default;
};

class dimension_graph {
 public:
  /// O(links * inverse Ackermann + axes).
  explicit dimension_graph(op_graph const& g) : first_axis_(g.value_count() + 1), first_reduced_(g.op_count() + 1) {
    auto const links = collect(g);
    number(g, links);
    describe(g, links);
  }

  std::size_t component_count() const { return extent_.size(); }
  id_range<component_id> components() const { return id_range<component_id>(component_count()); }
  component_id component(value_id v, int axis) const {
    return of_node_[first_axis_[v] + static_cast<std::uint32_t>(axis)];
  }
  /// Of the op's reduced axis number k.
  component_id reduced_component(op_id o, int k) const {
    return of_node_[first_reduced_[o] + static_cast<std::uint32_t>(k)];
  }
  int reduced_count(op_id o) const {
    return static_cast<int>(first_reduced_[id_at<op_id>(index(o) + 1)] - first_reduced_[o]);
  }
  /// What the number of parts must divide: the greatest common divisor of the extents of the component's axes.
  std::int64_t extent(component_id c) const { return extent_[c]; }
  /// By ascending value and axis.
  std::span<value_axis const> axes(component_id c) const { return axes_[c]; }
  /// By ascending op, each once.
  std::span<dim_member const> members(component_id c) const { return members_[c]; }
  std::span<dim_obstacle const> obstacles(component_id c) const { return obstacles_[c]; }
  /// More than one element, an op to cut, and nothing in the way.
  bool is_cuttable(component_id c) const { return extent(c) > 1 && !members(c).empty() && obstacles(c).empty(); }

 private:
  struct op_link {
    op_id op;
    dim_link link;
  };

  /// What the operators say, by ascending op; also counts the nodes.
  plain_vector<op_link> collect(op_graph const& g);
  std::uint32_t in_node(op_graph const& g, op_link const& l) const {
    return first_axis_[g.inputs(l.op)[static_cast<std::size_t>(l.link.input)]] +
           static_cast<std::uint32_t>(l.link.in_axis);
  }
  std::uint32_t out_node(op_graph const& g, op_link const& l) const {
    auto const axis = static_cast<std::uint32_t>(l.link.out_axis);
    if (l.link.output < 0) return first_reduced_[l.op] + axis;
    return first_axis_[g.outputs(l.op)[static_cast<std::size_t>(l.link.output)]] + axis;
  }

  /// Joins along the links, then numbers the components in the order of their first nodes.
  void number(op_graph const& g, plain_vector<op_link> const& links);

  void describe(op_graph const& g, plain_vector<op_link> const& links);

  /// How op o takes part in component c.
  dim_member join(op_graph const& g, op_id o, component_id c, std::span<op_link const> own,
                  std::vector<std::pair<component_id, dim_obstacle>>& obstacles) const;

  table<value_id, std::uint32_t> first_axis_;  // the node of axis 0
  table<op_id, std::uint32_t> first_reduced_;  // the node of reduced axis 0
  plain_vector<component_id> of_node_;
  table<component_id, std::int64_t> extent_;
  csr<component_id, value_axis> axes_;
  csr<component_id, dim_member> members_;
  csr<component_id, dim_obstacle> obstacles_;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/dimension_graph.ipp>
#endif
