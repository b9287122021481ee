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

namespace neap::inline v0 {

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
  plain_vector<op_link> collect(op_graph const& g) {
    std::uint32_t nodes = 0;
    for (auto v : g.values()) {
      first_axis_[v] = nodes;
      nodes += static_cast<std::uint32_t>(g.type(v).rank());
    }
    first_axis_[id_at<value_id>(g.value_count())] = nodes;
    plain_vector<op_link> links;
    for (auto o : g.ops()) {
      first_reduced_[o] = nodes;
      int reduced = 0;
      for (auto const& l : g.links(o)) {
        links.push_back({o, l});
        if (l.output < 0) reduced = std::max(reduced, l.out_axis + 1);
      }
      nodes += static_cast<std::uint32_t>(reduced);
    }
    first_reduced_[id_at<op_id>(g.op_count())] = nodes;
    return links;
  }
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
  void number(op_graph const& g, plain_vector<op_link> const& links) {
    std::size_t const nodes = first_reduced_[id_at<op_id>(g.op_count())];
    union_find sets(nodes);
    for (auto const& l : links) sets.join(in_node(g, l), out_node(g, l));
    plain_vector<component_id> of_set(nodes, nothing<component_id>);
    of_node_.resize(nodes);
    for (std::uint32_t i = 0; i < nodes; ++i) {
      auto& c = of_set[sets.find(i)];
      if (c == nothing<component_id>) c = extent_.push_back(1);
      of_node_[i] = c;
    }
    axes_.build(component_count(), [&](auto&& pair) {
      for (auto v : g.values())
        for (int a = 0; a < g.type(v).rank(); ++a) pair(component(v, a), value_axis{v, a});
    });
    for (auto c : components()) {
      std::int64_t all = 0;
      for (auto const& a : axes(c)) all = std::gcd(all, g.type(a.value).dims[a.axis]);
      if (!axes(c).empty()) extent_[c] = all;
    }
  }

  void describe(op_graph const& g, plain_vector<op_link> const& links) {
    std::vector<std::pair<component_id, dim_member>> members;
    std::vector<std::pair<component_id, dim_obstacle>> obstacles;
    for (auto c : components())
      for (std::size_t i = 1; i < axes(c).size(); ++i)
        if (auto const v = axes(c)[i].value; v == axes(c)[i - 1].value && (i < 2 || axes(c)[i - 2].value != v))
          obstacles.push_back({c, {dim_obstacle::two_axes, g.producer(v), v}});

    plain_vector<component_id> mine;  // of the op at hand
    for (std::size_t first = 0, last = 0; first < links.size(); first = last) {
      op_id const o = links[first].op;
      while (last < links.size() && links[last].op == o) ++last;
      std::span<op_link const> const own(links.data() + first, last - first);
      mine.clear();
      for (auto const& l : own) {
        auto const c = of_node_[in_node(g, l)];
        if (std::find(mine.begin(), mine.end(), c) == mine.end()) mine.push_back(c);
      }
      for (auto c : mine) {
        members.emplace_back(c, join(g, o, c, own, obstacles));
        auto const linked = [&](bool out, std::size_t which, int axis) {
          return std::any_of(own.begin(), own.end(), [&](op_link const& l) {
            return out ? l.link.output == static_cast<int>(which) && of_node_[out_node(g, l)] == c
                       : l.link.input == static_cast<int>(which) && l.link.in_axis == axis;
          });
        };
        for (std::size_t i = 0; i < g.inputs(o).size(); ++i)
          for (int a = 0; a < g.type(g.inputs(o)[i]).rank(); ++a)
            if (component(g.inputs(o)[i], a) == c && !linked(false, i, a))
              obstacles.push_back({c, {dim_obstacle::unrelated_input, o, g.inputs(o)[i]}});
        bool const has_partial = members.back().second.combined != combine::concat;
        for (std::size_t j = 0; j < g.outputs(o).size(); ++j) {
          if (linked(true, j, 0)) continue;
          bool taken_for_piece = false;
          for (int a = 0; a < g.type(g.outputs(o)[j]).rank(); ++a)
            taken_for_piece |= component(g.outputs(o)[j], a) == c;
          if (!has_partial || taken_for_piece)
            obstacles.push_back({c, {dim_obstacle::unrelated_output, o, g.outputs(o)[j]}});
        }
      }
    }
    members_.build(component_count(), [&](auto&& pair) {
      for (auto const& [c, m] : members) pair(c, m);
    });
    obstacles_.build(component_count(), [&](auto&& pair) {
      for (auto const& [c, x] : obstacles) pair(c, x);
    });
  }

  /// How op o takes part in component c.
  dim_member join(op_graph const& g, op_id o, component_id c, std::span<op_link const> own,
                  std::vector<std::pair<component_id, dim_obstacle>>& obstacles) const {
    auto const fits = [](std::int64_t x, std::int64_t y) {
      return x == y || (x != 0 && y != 0 && (x % y == 0 || y % x == 0));
    };
    dim_member m{o, participation::reduced};
    bool any_reduced = false;
    std::uint32_t loop = 0;  // the reduced axis
    for (auto const& l : own) {
      if (of_node_[in_node(g, l)] != c) continue;
      auto const v = g.inputs(o)[static_cast<std::size_t>(l.link.input)];
      auto const node = out_node(g, l);
      if (l.link.output >= 0) {
        m.how = participation::spatial;
        auto const& out = g.type(g.outputs(o)[static_cast<std::size_t>(l.link.output)]);
        if (!fits(g.type(v).dims[l.link.in_axis], out.dims[l.link.out_axis]))
          obstacles.push_back({c, {dim_obstacle::extents_differ, o, v}});
      } else if (!any_reduced) {
        m.combined = l.link.how, loop = node, any_reduced = true;
      } else if (l.link.how != m.combined || node != loop) {
        obstacles.push_back({c, {dim_obstacle::two_loops, o, v}});
      }
    }
    // Pieces and partial results come of one loop where the same inputs are cut for both.
    for (auto const& l : own) {
      if (m.how == participation::reduced || !any_reduced) break;
      if (of_node_[in_node(g, l)] != c) continue;
      bool const for_both = std::any_of(own.begin(), own.end(), [&](op_link const& x) {
        return x.link.input == l.link.input && x.link.in_axis == l.link.in_axis &&
               (x.link.output < 0) != (l.link.output < 0);
      });
      if (for_both) continue;
      obstacles.push_back({c, {dim_obstacle::two_loops, o, g.inputs(o)[static_cast<std::size_t>(l.link.input)]}});
      break;
    }
    return m;
  }

  table<value_id, std::uint32_t> first_axis_;  // the node of axis 0
  table<op_id, std::uint32_t> first_reduced_;  // the node of reduced axis 0
  plain_vector<component_id> of_node_;
  table<component_id, std::int64_t> extent_;
  csr<component_id, value_axis> axes_;
  csr<component_id, dim_member> members_;
  csr<component_id, dim_obstacle> obstacles_;
};

}  // namespace neap::inline v0
