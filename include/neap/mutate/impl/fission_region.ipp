// The bodies of <neap/mutate/fission_region.hpp>.
#pragma once

#include <neap/mutate/fission_region.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC fission_axes::fission_axes(op_graph const& g, dimension_graph const& dims, component_id c, std::int64_t grain,
                                     bool again)
    : grain_(grain),
      again_(again),
      axis_(g.value_count(), std::int8_t{-1}),
      whole_(g.op_count(), 0),
      role_(g.op_count(), std::uint8_t{0}) {
  for (auto const& a : dims.axes(c)) {
    auto& mine = axis_[a.value];
    mine = mine == -1 ? static_cast<std::int8_t>(a.axis) : two_axes;
  }
  for (auto const& m : dims.members(c)) judge(g, m.op);
}

NEAP_FUNC void fission_axes::judge(op_graph const& g, op_id o) {
  if (!g.may_cut(o) || serves_parts(g, o) || flow::stream(g, o) != op_stream::compute || g.as<op::wait>(o)) return;
  if (auto const p = g.record(o).part; p != nothing<part_id> && (!again_ || g.part(p).of != nothing<part_id>)) return;
  auto const in = g.inputs(o);
  auto const out = g.outputs(o);
  if (auto const* x = g.as<op::opaque>(o); x && (!x->pure || x->placeholder)) return;
  std::size_t views = 0;
  for (auto v : out) {
    auto const& r = g.record(v);
    // What is put together again has its dense size; the op that overwrites it needs the same.
    if (g.overwrites(v) != nothing<value_id> ||
        (g.is_overwritten(r.storage) && g.bytes(r.storage) != g.type(v).bytes()))
      return;
    if (r.alias == alias_kind::update || axis_[v] == two_axes || (r.alias == alias_kind::view && r.of < 0)) return;
    views += r.alias == alias_kind::view;
  }
  if (out.empty() || (views != 0 && views != out.size())) return;
  for (auto v : in)
    if (axis_[v] == two_axes) return;
  auto const links = g.links(o);
  // Ends of links in the component: inputs, outputs, reduced loops. One loop if they all hang together.
  auto const n = static_cast<std::uint32_t>(in.size() + out.size());
  auto const end_of = [&](dim_link const& l) {
    return l.output >= 0 ? static_cast<std::uint32_t>(in.size()) + static_cast<std::uint32_t>(l.output)
                         : n + static_cast<std::uint32_t>(l.out_axis);
  };
  union_find together(n + 64);
  plain_vector<bool> linked(n + 64, false);
  auto how = combine::concat;
  for (auto const& l : links) {
    auto const v = in[static_cast<std::size_t>(l.input)];
    if (axis_[v] != l.in_axis) continue;
    if (l.output < 0) {
      if (l.how == combine::concat || (how != combine::concat && how != l.how) || l.out_axis >= 64) return;
      how = l.how;
    } else if (axis_[out[static_cast<std::size_t>(l.output)]] != l.out_axis) {
      return;
    }
    if (g.type(v).dims[l.in_axis] % grain_ != 0) return;
    if (l.output >= 0 && g.type(out[static_cast<std::size_t>(l.output)]).dims[l.out_axis] % grain_ != 0) return;
    auto const from = static_cast<std::uint32_t>(l.input);
    linked[from] = linked[end_of(l)] = true;
    together.join(from, end_of(l));
  }
  std::uint32_t first = no_id;
  for (std::uint32_t k = 0; k < n + 64; ++k) {
    if (!linked[k]) {
      if (k >= in.size() || axis_[in[k]] < 0) continue;
      if (k >= 64) return;
      whole_[o] |= std::uint64_t{1} << k;  // it has an axis in the component, but the op does not cut it there
      continue;
    }
    if (first == no_id) first = k;
    else if (together.find(k) != together.find(first)) return;
  }
  if (first == no_id) return;
  bool partial = false;
  for (std::size_t j = 0; j < out.size(); ++j) {
    if (linked[in.size() + j]) continue;
    if (axis_[out[j]] >= 0 || how == combine::concat || views != 0) return;
    partial = true;
  }
  role_[o] = partial ? static_cast<std::uint8_t>(1 + static_cast<int>(how)) : std::uint8_t{1};
}

NEAP_FUNC fission_region::fission_region(op_graph const& g, schedule const& order,
                                         table<op_id, std::uint32_t> const& at, fission_axes const& axes,
                                         std::uint32_t first, std::uint32_t last)
    : first_(first),
      place_(last - first + 1, place::before) {
  for (auto p = first; p <= last; ++p) {
    auto const o = order[p];
    bool on_pieces = false, waits = false;
    auto const look = [&](op_id x) -> place {
      auto const q = at[x];
      return q < first || q >= p ? place::before : place_[q - first];
    };
    for (std::size_t i = 0; i < g.inputs(o).size(); ++i) {
      auto const v = g.inputs(o)[i];
      auto const x = g.producer(v);
      if (x == nothing<op_id>) continue;
      auto const where = look(x);
      if (where == place::inside)
        (axes.is_partial(g, x, v) || (axes.can_cut(o) && axes.needs_whole(g, o, i)) ? waits : on_pieces) = true;
      waits |= where == place::after;
    }
    for (auto x : g.order_after(o)) waits |= look(x) != place::before;
    auto& mine = place_[p - first];
    if (!waits && axes.can_cut(o)) mine = place::inside, ++inside_;
    else if (waits || on_pieces) mine = place::after;
  }
}

}}  // namespace neap::v0
