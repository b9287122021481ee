// The bodies of <neap/ir/dimension_graph.hpp>.
#pragma once

#include <neap/ir/dimension_graph.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC plain_vector<dimension_graph::op_link> dimension_graph::collect(op_graph const& g) {
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

NEAP_FUNC void dimension_graph::number(op_graph const& g, plain_vector<op_link> const& links) {
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

NEAP_FUNC void dimension_graph::describe(op_graph const& g, plain_vector<op_link> const& links) {
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
        for (int a = 0; a < g.type(g.outputs(o)[j]).rank(); ++a) taken_for_piece |= component(g.outputs(o)[j], a) == c;
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

NEAP_FUNC dim_member dimension_graph::join(op_graph const& g, op_id o, component_id c, std::span<op_link const> own,
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

}}  // namespace neap::v0
